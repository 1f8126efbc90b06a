package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	prometheus *observability.Prometheus
	program    string
	rows       [][4]string // what, budget, seen, whether it was met
}

// TestFleet: the rules, `tcpdiag fleet` and the dashboard's panels beside 15,000 listeners.
func TestFleet(t *testing.T) {
	proof.Skip(t)
	if !observability.Installed("prometheus") {
		t.Skip("prometheus is not installed (Debian: prometheus)")
	}
	b := &bench{size: proof.Size(size{250, 30 * time.Second, 5 * time.Minute}, size{4, 2 * time.Second, 20 * time.Second})}
	b.program = filepath.Join(t.TempDir(), "tcpdiag")
	out, err := exec.Command("go", "build", "-o", b.program, checkout+"/cmd/tcpdiag").CombinedOutput()
	require.NoError(t, err, "%s", out)
	b.agents = serveAgents(t, b.nodes)
	b.start(t)
	b.settle(t)

	b.memory(t)
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
		Jobs: []observability.Job{{Name: "tcpdiag", Targets: b.agents.targets, ScrapeInterval: b.interval}},
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
	b.row("time to scrape one agent of 60 listeners", "reported", fmt.Sprintf("%.0f ms, the longest %.0f ms", 1000*b.one(t, "avg(scrape_duration_seconds)"), 1000*b.one(t, "max(scrape_duration_seconds)")), nil)
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
	return names
}

// A group that takes longer than its interval misses evaluations; a tenth leaves room
// for others.
func (b *bench) evaluation(t *testing.T) {
	all, before := 0.0, len(b.rows)
	for name, took := range b.own(t) {
		group := regexp.MustCompile(`^prometheus_rule_group_last_duration_seconds\{rule_group="[^"]*/(\w+)\.rules\.yml;([\w-]+)"\}$`).FindStringSubmatch(name)
		if group == nil {
			continue
		}
		all += took
		met := took <= b.interval.Seconds()/10
		b.row(fmt.Sprintf("evaluation of %s (%s)", group[2], group[1]), fmt.Sprintf("≤ %.0f s", b.interval.Seconds()/10), fmt.Sprintf("%.2f s", took), &met)
	}
	slices.SortFunc(b.rows[before:], func(x, y [4]string) int { return strings.Compare(x[0], y[0]) })
	b.row("evaluation of all groups", fmt.Sprintf("≤ %.0f s, the interval", b.interval.Seconds()), fmt.Sprintf("%.2f s", all), new(all <= b.interval.Seconds()))
}

// fleet runs the command and returns its document, how long it took, and its exit code.
func (b *bench) fleet(t *testing.T, args ...string) (table api.Fleet, took time.Duration, code int) {
	t.Helper()
	cmd := exec.Command(b.program, append([]string{"fleet", "--prometheus", b.prometheus.URL(), "-o", "json", "--timeout", "2m"}, args...)...)
	began := time.Now()
	out, err := cmd.Output()
	took = time.Since(began)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
		err = nil
		require.GreaterOrEqual(t, code, 10, "%s", exit.Stderr)
	}
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &table))
	return table, took, code
}

// The worst are first, whoever they are among.
func (b *bench) table(t *testing.T) {
	const times = 9
	for _, c := range []struct {
		what string
		args []string
	}{
		{"`tcpdiag fleet`: the worst 20", []string{"--exit-status"}},
		{"`tcpdiag fleet -n 1000`", []string{"-n", "1000", "--exit-status"}},
		{"`tcpdiag fleet --at`, in the past", []string{"--at", "-" + (2 * b.interval).String(), "--exit-status"}},
	} {
		var took []time.Duration
		for range times {
			table, d, code := b.fleet(t, c.args...)
			took = append(took, d)
			require.True(t, table.FromRules)
			require.Equal(t, 13, code, "%s %v %v", c.what, table.Counts, table.Time)
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
		}
		slices.Sort(took)
		median := took[times/2]
		met := median <= soon
		b.row(c.what+", from the start of the program to its end", fmt.Sprintf("≤ %v", soon), fmt.Sprintf("%v, the longest of %d %v", median.Round(10*time.Millisecond), times, took[times-1].Round(10*time.Millisecond)), &met)
	}
	began := time.Now()
	_, err := b.prometheus.Query(t.Context(), `count_values("status", `+ruleExpr(t, "listener:tcpdiag_status:max")+")")
	require.NoError(t, err)
	b.row("the status of all by the agents' own series, where rules are missing", "reported", time.Since(began).Round(10*time.Millisecond).String(), nil)
}

func ruleExpr(t *testing.T, record string) string {
	t.Helper()
	text, err := os.ReadFile(checkout + "/deploy/prometheus/fleet.rules.yml")
	require.NoError(t, err)
	var f struct {
		Groups []struct {
			Rules []struct{ Record, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &f))
	for _, r := range f.Groups[0].Rules {
		if r.Record == record {
			return r.Expr
		}
	}
	require.Fail(t, "no such rule", record)
	return ""
}

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
	shown := b.lasts.Round(time.Minute)
	shown = max(shown, time.Minute)
	var open, folded time.Duration
	ask := func(p panel, sum *time.Duration) {
		var took time.Duration
		for _, q := range p.Targets {
			expr := strings.NewReplacer("$job", ".+", "$instance", ".+", "$__rate_interval", (4 * b.interval).String(), "$__range", shown.String()).Replace(q.Expr)
			began := time.Now()
			if q.Instant {
				_, err = b.prometheus.Query(t.Context(), expr)
			} else {
				_, err = b.prometheus.QueryRange(t.Context(), expr, time.Now().Add(-shown), time.Now(), b.interval)
			}
			require.NoError(t, err, p.Title)
			took += time.Since(began)
		}
		if len(p.Targets) > 0 {
			met := took <= soon
			b.row("panel: "+p.Title, fmt.Sprintf("≤ %v", soon), took.Round(10*time.Millisecond).String(), &met)
			*sum += took
		}
	}
	for _, p := range d.Panels {
		ask(p, &open)
		for _, one := range p.Panels {
			ask(one, &folded)
		}
	}
	b.row(fmt.Sprintf("all panels that are seen first, one after the other, %v", shown), "reported", open.Round(10*time.Millisecond).String(), nil)
	b.row("all panels of folded rows", "reported", folded.Round(10*time.Millisecond).String(), nil)
}

func (b *bench) write(t *testing.T) {
	version, err := exec.Command("prometheus", "--version").CombinedOutput()
	require.NoError(t, err)
	var out strings.Builder
	fmt.Fprintf(&out, `# A fleet of %d pods

Written by `+"`make prove PROOF=fleet`"+`. A real Prometheus (%s) scrapes %d agents of nodes with %d pods each, each of
which listens on %d ports: %d listeners. The agents are simulated, what they export is made by the real exporter.
Interval of scrapes and rules: %v, for %v; the dashboard is asked for the last %v. One listener loses clients, one port
has no listener, one of 300 listeners warns. %d processors, which others used as well.

| what | budget | here | |
|---|---|---|---|
`, b.nodes*podsPerNode, regexp.MustCompile(`version [\d.]+`).FindString(string(version)), b.nodes, podsPerNode, listenersPerPod, b.listeners(), b.interval, b.lasts, b.lasts, runtime.NumCPU())
	for _, r := range b.rows {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", r[0], r[1], r[2], r[3])
	}
	require.NoError(t, os.WriteFile(checkout+"/docs/results/fleet.md", []byte(out.String()), 0o600))
	require.NoError(t, os.Chmod(checkout+"/docs/results/fleet.md", 0o644)) //nolint:gosec // docs
}
