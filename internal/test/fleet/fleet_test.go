package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/observability"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

const checkout = "../../.."

// soon is what a person waits for without asking whether it hangs.
const soon = time.Second

// size is how large a fleet is, how often it is scraped, and for how long.
type size struct {
	nodes    int
	interval time.Duration
	lasts    time.Duration
}

// bench is a Prometheus that scrapes a fleet.
type bench struct {
	size
	agents     *agents
	external   map[string]string // labels of its Prometheus
	prometheus *observability.Prometheus
	program    string
	at         time.Time   // when all was scraped: what is asked is of this moment
	rows       [][4]string // what, budget, seen, whether it was met
}

// TestFleet: the rules, `tcpdiag fleet` and the dashboard's panels beside 300 to 15,000 listeners,
// each a column of the results. In full each is asked for when its rules have three minutes.
func TestFleet(t *testing.T) {
	proof.Skip(t)
	if !observability.Installed("prometheus") {
		t.Skip("prometheus is not installed (Debian: prometheus)")
	}
	sizes := proof.Size(
		[]size{{5, 30 * time.Second, 200 * time.Second}, {50, 30 * time.Second, 200 * time.Second}, {250, 30 * time.Second, 200 * time.Second}},
		[]size{{4, 2 * time.Second, 20 * time.Second}},
	)
	for _, of := range sizes {
		t.Run(strconv.Itoa(of.nodes*listenersPerNode), func(t *testing.T) { (&bench{size: of}).measure(t) })
	}
}

func (b *bench) measure(t *testing.T) {
	b.program = build(t)
	b.agents = serveAgents(t, b.nodes)
	b.start(t)
	b.settle(t)
	b.memory(t)
	b.at = time.Now().Add(-time.Second)
	b.rest(t)

	b.evaluation(t)
	b.table(t)
	b.panels(t)
	for _, r := range b.rows {
		t.Log(r)
	}
	if proof.Full() {
		b.write(t)
	}
}

// results is the file that the columns are written to: a line of data for each size is in it, too,
// so that one size can be measured again.
const results = checkout + "/docs/results/fleet.md"

// rest starts Prometheus again on what it has, with nothing to scrape and no rules: what it
// uses then is for what it is asked.
func (b *bench) rest(t *testing.T) {
	b.agents.stop()
	b.prometheus.Stop()
	o := b.prometheus.PrometheusOptions
	o.Jobs, o.Rules = nil, t.TempDir()
	var err error
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	b.prometheus, err = observability.StartPrometheus(ctx, o)
	require.NoError(t, err)
	t.Cleanup(b.prometheus.Stop)
}

func (b *bench) listeners() int { return b.nodes * listenersPerNode }

func (b *bench) start(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	rules, err := filepath.Abs(checkout + "/deploy/prometheus")
	require.NoError(t, err)
	b.prometheus, err = observability.StartPrometheus(t.Context(), observability.PrometheusOptions{
		Dir: t.TempDir(), Address: address, Rules: rules, EvaluationInterval: b.interval,
		Flags:    []string{"--query.timeout=15m", "--storage.tsdb.min-block-duration=2h", "--storage.tsdb.max-block-duration=2h"}, // of a machine that others use as well; a sidecar takes no other blocks
		External: b.external,
		Jobs: []observability.Job{
			{Name: "tcpdiag", Targets: b.agents.targets, ScrapeInterval: b.interval},
			{Name: "kube-state-metrics", Targets: []observability.Target{b.agents.owned}, ScrapeInterval: b.interval},
		},
	})
	require.NoError(t, err)
	t.Cleanup(b.prometheus.Stop)
}

// settle waits until all is scraped, and rules have the counters of three minutes.
func (b *bench) settle(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), b.lasts+10*time.Minute)
	defer cancel()
	for {
		got, err := b.prometheus.Query(ctx, "count(listener:tcpdiag_status:max)")
		require.NoError(t, err)
		if len(got) == 1 && int(got[0].Values[0]) == b.listeners()+1 && time.Since(b.agents.started) > b.lasts {
			return
		}
		select {
		case <-time.After(b.interval):
		case <-ctx.Done():
			require.Fail(t, "not all listeners are recorded", "%v", got)
		}
	}
}

func (b *bench) row(what, budget, seen string, met *bool) {
	verdict := ""
	if met != nil {
		verdict = map[bool]string{true: "met", false: "missed"}[*met]
	}
	b.rows = append(b.rows, [4]string{what, budget, seen, verdict})
}

// one is the value of an expression that has one.
func (b *bench) one(t *testing.T, expr string) float64 {
	t.Helper()
	got, err := b.prometheus.Query(t.Context(), expr)
	require.NoError(t, err)
	require.Len(t, got, 1, expr)
	return got[0].Values[0]
}

// own are Prometheus's own metrics, by their names with labels.
func (b *bench) own(t *testing.T) map[string]float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.prometheus.URL()+"/metrics", http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	out := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		if at := strings.LastIndex(line, " "); at > 0 && line[0] != '#' {
			if v, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64); err == nil {
				out[line[:at]] = v
			}
		}
	}
	return out
}

// What the rules add: two series of fleet.rules.yml for each listener.
func (b *bench) memory(t *testing.T) {
	own := b.own(t)
	series := own["prometheus_tsdb_head_series"]
	resident := own["process_resident_memory_bytes"]
	n := float64(b.listeners())
	scraped := b.one(t, `sum(scrape_samples_scraped)`)
	b.row("series that the agents export", "reported", fmt.Sprintf("%.0f: %.1f a listener, its process and namespace included", scraped, scraped/n), nil)
	recorded := func(file string) float64 {
		sum := 0.0
		for _, name := range recordedIn(t, file) {
			if got, err := b.prometheus.Query(t.Context(), fmt.Sprintf("count(%s)", name)); err == nil && len(got) == 1 {
				sum += got[0].Values[0]
			}
		}
		return sum / n
	}
	for _, f := range []struct {
		file string
		most float64
	}{{"fleet.rules.yml", 2.5}, {"alerting.rules.yml", 6.5}, {"recording.rules.yml", 7.5}} {
		got := recorded(f.file)
		require.LessOrEqual(t, got, f.most, f.file)
		b.row("recorded series a listener, "+f.file, fmt.Sprintf("≤ %.1f", f.most), fmt.Sprintf("%.2f", got), new(true))
	}
	b.row("Prometheus's resident memory", "reported", fmt.Sprintf("%.1f GiB with %.0f series in the head: %.1f KiB a series", resident/(1<<30), series, resident/series/1024), nil)
}

// recordedIn are the names that a file of rules records.
func recordedIn(t *testing.T, file string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, "deploy/prometheus", file))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^\s*- record: (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	require.NotEmpty(t, names)
	return slices.Compact(names) // a rule for each value of a label has the same name
}

// used is the CPU time of Prometheus for a piece of work: the machine may be busy with
// others, and nothing is scraped meanwhile. The least of several is what it takes.
func (b *bench) used(t *testing.T, do func()) time.Duration {
	t.Helper()
	const times = 3
	least := time.Duration(1 << 62)
	for range times {
		before := b.cpu(t)
		do()
		least = min(least, b.cpu(t)-before)
	}
	return least
}

// cpu is the CPU time that Prometheus has used (utime and stime of /proc/PID/stat, in
// hundredths of a second).
func (b *bench) cpu(t *testing.T) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.prometheus.PID()))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var sum time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		require.NoError(t, err)
		sum += time.Duration(ticks) * time.Second / 100
	}
	return sum
}

// ask evaluates an expression at the moment at which all was scraped, or over a time that
// ends with it.
func (b *bench) ask(t *testing.T, expr string, over time.Duration) []json.RawMessage {
	t.Helper()
	form := url.Values{"query": {expr}, "time": {b.at.Format(time.RFC3339)}, "timeout": {"15m"}}
	path := "/api/v1/query"
	if over > 0 {
		path = "/api/v1/query_range"
		form.Set("start", b.at.Add(-over).Format(time.RFC3339))
		form.Set("end", b.at.Format(time.RFC3339))
		form.Set("step", b.interval.String())
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.prometheus.URL()+path, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []json.RawMessage }
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	require.Empty(t, answer.Error, expr)
	return answer.Data.Result
}

// A group that takes longer than its interval misses evaluations; a fifth of a core at 15,000
// listeners leaves room for others. Fewer take less: a fiftieth is the least that is asked for.
// A group with an interval of its own is evaluated less often.
func (b *bench) evaluation(t *testing.T) {
	budget := max(b.interval/50, b.interval*time.Duration(b.listeners())/15000/5)
	var asked []question
	for _, file := range []string{"alerting", "fleet", "recording"} {
		for _, g := range groups(t, file) {
			for _, r := range g.Rules {
				asked = append(asked, question{expr: "count(" + r.Expr + ")"})
			}
		}
	}
	took, mean := b.rounds(t, asked)
	var all, withGC float64 // seconds
	for _, file := range []string{"alerting", "fleet", "recording"} {
		for _, g := range groups(t, file) {
			every, share := "", 1.0
			if g.Interval > b.interval {
				every, share = fmt.Sprintf(", every %v", g.Interval), b.interval.Seconds()/g.Interval.Seconds()
			}
			var sum time.Duration
			for _, r := range g.Rules {
				t.Logf("%s: %s %s%s", seconds(took[0]), g.Name, r.Record, r.Alert)
				sum += took[0]
				withGC += mean[0].Seconds() * share
				took, mean = took[1:], mean[1:]
			}
			all += sum.Seconds() * share
			b.row(fmt.Sprintf("one evaluation of %s (%s.rules.yml)%s", g.Name, file, every), "reported", seconds(sum), nil)
		}
	}
	b.row("all rules, each interval", "≤ "+seconds(budget)+", a fifth of a core at 15,000", fmt.Sprintf("%.2f s", all), new(all <= budget.Seconds()))
	b.row("the same with Prometheus's garbage collection, the mean of all rounds", "reported", fmt.Sprintf("%.2f s", withGC), nil)
}

// question is an expression, for a moment or over a time that ends with it.
type question struct {
	expr string
	over time.Duration
}

// rounds asks all of them several times: the least and the mean of each. A garbage collection of Prometheus lasts for some
// questions that follow each other, and in another round meets others.
func (b *bench) rounds(t *testing.T, asked []question) (least, mean []time.Duration) {
	t.Helper()
	const rounds = 4
	least, mean = make([]time.Duration, len(asked)), make([]time.Duration, len(asked))
	for round := range rounds {
		for i, q := range asked {
			before := b.cpu(t)
			b.ask(t, q.expr, q.over)
			one := b.cpu(t) - before
			if round == 0 || one < least[i] {
				least[i] = one
			}
			mean[i] += one / rounds
		}
	}
	return least, mean
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

type group struct {
	Name     string
	Interval time.Duration
	Rules    []struct{ Record, Alert, Expr string }
}

func groups(t *testing.T, file string) []group {
	t.Helper()
	text, err := os.ReadFile(checkout + "/deploy/prometheus/" + file + ".rules.yml")
	require.NoError(t, err)
	var f struct{ Groups []group }
	require.NoError(t, yaml.Unmarshal(text, &f))
	require.NotEmpty(t, f.Groups)
	return f.Groups
}

// fleet runs the command and returns its document, how long it took, how much of that was its
// own CPU time, and its exit code.
func (b *bench) fleet(t *testing.T, args ...string) (table api.Fleet, took, own time.Duration, code int) {
	t.Helper()
	cmd := exec.Command(b.program, append([]string{"fleet", "--prometheus", b.prometheus.URL(), "-o", "json", "--timeout", "5m", "--at", b.at.Format(time.RFC3339)}, args...)...)
	began := time.Now()
	out, err := cmd.Output()
	took = time.Since(began)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
		require.GreaterOrEqual(t, code, 10, "%s", exit.Stderr)
		err = nil
	}
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &table))
	return table, took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), code
}

// The worst are first, whoever they are among.
func (b *bench) table(t *testing.T) {
	for _, c := range []struct {
		what string
		args []string
	}{{"`tcpdiag fleet`: the worst 20", nil}, {"`tcpdiag fleet -n 1000`", []string{"-n", "1000"}}} {
		shortest, least := time.Duration(1<<62), time.Duration(1<<62)
		used := b.used(t, func() {
			table, took, own, code := b.fleet(t, append(c.args, "--exit-status")...)
			shortest, least = min(shortest, took), min(least, own)
			require.True(t, table.FromRules)
			require.Equal(t, 13, code)
			require.Equal(t, b.nodes, table.Agents)
			require.Equal(t, b.listeners()+1, table.Omitted+len(table.Listeners))
			require.Equal(t, "down", table.Listeners[0].Status)
			worst := table.Listeners[1]
			require.Equal(t, "losing", worst.Status)
			require.Equal(t, nodeName(b.agents.worst[0]), worst.Node)
			require.Equal(t, uint16(8080), worst.Port)
			require.Equal(t, 8192, *worst.Connections.Used)
			require.Equal(t, 200, *worst.Threads.Used)
			require.Positive(t, *worst.ClientsTurnedAway)
			require.Equal(t, "warning", table.Listeners[2].Status)
		})
		met := used+least <= soon
		b.row(c.what, "≤ "+seconds(soon), fmt.Sprintf("%s of Prometheus and %s of the program; %s by the clock, beside others", seconds(used), seconds(least), seconds(shortest)), &met)
	}
	for _, r := range groups(t, "fleet")[0].Rules[:1] {
		used := b.used(t, func() { b.ask(t, `count_values("status", `+r.Expr+")", 0) })
		b.row("the status of all, by the agents' own series: where rules are missing", "reported", seconds(used), nil)
	}
}

// shown is the time that the dashboard is asked for.
func shown(lasts time.Duration) time.Duration { return max(lasts.Truncate(time.Minute), time.Minute) }

// The dashboard's panels as Grafana asks for them when it is opened.
func (b *bench) panels(t *testing.T) {
	text, err := os.ReadFile(checkout + "/dashboards/fleet.json")
	require.NoError(t, err)
	type panel struct {
		Title   string
		Targets []struct {
			Expr    string
			Instant bool
		}
		Panels []panel
	}
	var d struct{ Panels []panel }
	require.NoError(t, json.Unmarshal(text, &d))
	var asked []question
	var took []time.Duration
	each := func(p panel, do func(question) time.Duration) (sum time.Duration) {
		for _, q := range p.Targets {
			over := shown(b.lasts)
			if q.Instant {
				over = 0
			}
			sum += do(question{strings.NewReplacer("$job", ".+", "$instance", ".+", "$__rate_interval", (4 * b.interval).String(), "$__range", shown(b.lasts).String()).Replace(q.Expr), over})
		}
		return sum
	}
	collect := func(q question) time.Duration { asked = append(asked, q); return 0 }
	next := func(question) time.Duration {
		one := took[0]
		took = took[1:]
		return one
	}
	told := func(p panel) time.Duration {
		if len(p.Targets) == 0 {
			return 0
		}
		sum := each(p, next)
		b.row("panel: "+p.Title, "≤ "+seconds(soon), seconds(sum), new(sum <= soon))
		return sum
	}
	for _, p := range d.Panels {
		each(p, collect)
		for _, one := range p.Panels {
			each(one, collect)
		}
	}
	took, _ = b.rounds(t, asked)
	var open, folded time.Duration
	for _, p := range d.Panels {
		open += told(p)
		for _, one := range p.Panels {
			folded += told(one)
		}
	}
	b.row("all panels that are seen first", "reported", seconds(open), nil)
	b.row("all panels of folded rows", "reported", seconds(folded), nil)
}

// byHand begins what follows the table, which nobody's run replaces.
const byHand = "\n## By hand\n"

// write replaces the column of this size.
func (b *bench) write(t *testing.T) {
	columns := map[int][][4]string{b.listeners(): b.rows}
	kept := ""
	if text, err := os.ReadFile(results); err == nil {
		if at := strings.Index(string(text), byHand); at >= 0 {
			kept = string(text[at:])
		}
		for _, m := range regexp.MustCompile(`(?m)^<!-- (\d+) (\[.*\]) -->$`).FindAllStringSubmatch(string(text), -1) {
			var rows [][4]string
			n, err := strconv.Atoi(m[1])
			if err == nil && n != b.listeners() && json.Unmarshal([]byte(m[2]), &rows) == nil {
				columns[n] = rows
			}
		}
	}
	version, err := exec.Command("prometheus", "--version").CombinedOutput()
	require.NoError(t, err)
	sizes := slices.Sorted(maps.Keys(columns))
	var out strings.Builder
	fmt.Fprintf(&out, `# A fleet of up to 5,000 pods

Written by `+"`make prove PROOF=fleet`"+`. A real Prometheus (%s) scrapes the agents of nodes with %d pods each, each of which listens on
%d ports. The agents are simulated, what they export is made by the real exporter. Scrapes and rules every %v,
for %v; the dashboard is asked for the last %v of them. Times are CPU time of Prometheus (what a quiet core needs), the
least of three or four, after the last scrape: the machine was busy with others. One listener loses clients, one port has no listener,
one of 300 listeners warns. %d processors, which others used as well.

| what | budget |`, regexp.MustCompile(`version [\d.]+`).FindString(string(version)), podsPerNode, listenersPerPod, b.interval, b.lasts, shown(b.lasts), runtime.NumCPU())
	for _, n := range sizes {
		fmt.Fprintf(&out, " %d listeners |", n)
	}
	out.WriteString("\n|---|---|" + strings.Repeat("---|", len(sizes)) + "\n")
	for i, r := range columns[sizes[len(sizes)-1]] {
		fmt.Fprintf(&out, "| %s | %s |", r[0], r[1])
		for _, n := range sizes {
			cell := "–"
			if i < len(columns[n]) && columns[n][i][0] == r[0] {
				cell = strings.TrimSuffix(columns[n][i][2]+", "+columns[n][i][3], ", ")
			}
			fmt.Fprintf(&out, " %s |", cell)
		}
		out.WriteString("\n")
	}
	out.WriteString("\n")
	for _, n := range sizes {
		text, err := json.Marshal(columns[n])
		require.NoError(t, err)
		fmt.Fprintf(&out, "<!-- %d %s -->\n", n, text)
	}
	out.WriteString(kept)
	require.NoError(t, os.WriteFile(results, []byte(out.String()), 0o600))
	require.NoError(t, os.Chmod(results, 0o644)) //nolint:gosec // docs
}
