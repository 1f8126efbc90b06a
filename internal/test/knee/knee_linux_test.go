package knee

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

const head = `# The knee

Written by ` + "`make prove PROOF=knee`" + `: the highest load that ` + "`tcpdiag run`" + ` states after one run whose load rises beyond
it, against a bisection with many runs of a load that stays the same. A load is served where every client's own
account says so: an answer within the SLO. The bisection is done twice: what it found is the range between what was served and
what was not in both. A rate of it stays for 12 s: what is served for long is less by what may wait meanwhile. The settings that the run proposes for its load, and for twice its load, were applied
to a new server, and that load was sent again.

| case | tcpdiag run, from one run | bisection | so it is | settings applied |
|---|---|---|---|---|
`

// limits of a Tomcat.
type limits struct{ threads, connections, accept int }

func (l limits) String() string {
	return fmt.Sprintf("threads %d, connections %d, accept count %d", l.threads, l.connections, l.accept)
}

// experiment is a server and a load that rises from one rate to another, or of this many at once.
type experiment struct {
	name     string
	limits   limits
	path     string
	from, to float64
	atOnce   int
	slo      time.Duration
	connect  time.Duration                 // 0: 900 ms, before the first SYN is repeated
	server   func(c *rig.Case) *rig.Server // nil: the Spring Boot application with its limits
	cpus     string                        // a quota of its CPU time, once it is warm
	gap      time.Duration                 // between clients that come at once: a server needs some time to accept each
	settled  bool                          // settings are proposed and tried
}

func experiments() []experiment {
	return []experiment{
		{name: "C1, at once: one thread, 3 s, answers within 10 s", limits: limits{1, 8192, 100}, path: "/hello?ms=3000", atOnce: 5, slo: 10 * time.Second, settled: true},
		{name: "C1, a rate: 8 threads, 200 ms", limits: limits{8, 8192, 100}, path: "/hello?ms=200", from: 10, to: 60, slo: time.Second, settled: true},
		{name: "C2, a rate: 4 connections, 100 ms", limits: limits{20, 4, 100}, path: "/hello?ms=100", from: 10, to: 60, slo: 600 * time.Millisecond, settled: true},
		{name: "C3: one connection, accept count 1, 3 s", limits: limits{200, 1, 1}, path: "/hello?ms=3000", atOnce: 5, gap: 25 * time.Millisecond, settled: true},
		{name: "C4: 2 threads, 3 connections, accept count 1, 1 s", limits: limits{2, 3, 1}, path: "/hello?ms=1000", atOnce: 10, gap: 25 * time.Millisecond, settled: true},
		{name: "C5, a fifteenth: 20 threads, 600 ms, answers within 10.7 s", limits: limits{20, 8192, 600}, path: "/hello?ms=600", atOnce: 500, slo: 10700 * time.Millisecond, settled: true},
		{name: "D2, small: half a CPU, virtual threads, 10 ms of CPU", path: "/?burn=10", from: 10, to: 80, slo: 2 * time.Second, connect: 5 * time.Second, server: burning, cpus: "0.5"},
		{name: "a backend that works at 3 at once, 100 ms; 20 threads", path: "/?to=9000&hold=100", from: 10, to: 50, slo: time.Second, server: asking},
		{name: "PostgreSQL by a pool of 3, queries of 100 ms; 20 threads", path: "/query?ms=100", from: 10, to: 50, slo: time.Second, server: querying},
	}
}

// burning is a Tomcat on virtual threads.
func burning(c *rig.Case) *rig.Server {
	return c.Embedded(rig.JVM{Java: c.Java25()}, "protocol=org.apache.coyote.http11.Http11NioProtocol", "port=8080", "useVirtualThreads=true")
}

// asking is a Tomcat whose requests ask a backend that works at three of them at once.
func asking(c *rig.Case) *rig.Server {
	(&rig.Backend{Address: "127.0.0.1:" + strconv.Itoa(rig.BackendPort), AtOnce: 3}).Serve(c)
	return c.Embedded(rig.JVM{}, "protocol=org.apache.coyote.http11.Http11NioProtocol", "port=8080", "maxThreads=20")
}

// querying is a Spring Boot application with a pool of three connections to PostgreSQL.
func querying(c *rig.Case) *rig.Server {
	const port = 15432
	c.Postgres(port)
	return c.Java(rig.JVM{Main: []string{
		"-jar", c.Built("internal/test/waits/app", "waiting", "waiting.jar"), "--server.port=8080", "--server.tomcat.threads.max=20",
		"--spring.datasource.url=jdbc:postgresql://127.0.0.1:" + strconv.Itoa(port) + "/postgres", "--spring.datasource.username=app", "--spring.datasource.hikari.maximum-pool-size=3",
	}})
}

func TestKnee(t *testing.T) {
	rig.Cases(t, "docs/results/knee.md", head, experiments(), func(e experiment) (string, func(*rig.Case)) {
		e.connect = cmp.Or(e.connect, 900*time.Millisecond)
		return e.name, func(c *rig.Case) { (&trial{Case: c, experiment: e, clients: program(c)}).run() }
	})
}

// program is the load.
func program(c *rig.Case) string {
	return c.Made(filepath.Join(c.Kit.Dir, "clients"), func(path string) error {
		return c.Download(c.Source("."), "go", "build", "-o", path, "./internal/test/knee/clients")
	})
}

type trial struct {
	*rig.Case
	experiment
	clients string
}

const (
	rises  = 25 * time.Second // a rate, in the run that states the knee
	stays  = 12 * time.Second // a rate of the bisection
	within = .05              // of the bisection
)

func (t *trial) run() {
	t.start(t.limits)
	doc := t.observed(t.from, t.to, t.atOnce)
	l := &doc.Listeners[0]
	k := l.Knee
	t.Holds(k != nil && k.Reached, "no knee was reached")
	if k == nil || !k.Reached {
		return
	}
	said, text := k.ClientsPerSecond, fmt.Sprintf("%.1f ± %.1f clients/s, %s", k.ClientsPerSecond, k.Error, k.Cause)
	if t.atOnce > 0 {
		t.Holds(k.AtOnce != nil, "a number of clients is to be said")
		if k.AtOnce == nil {
			return
		}
		said, text = float64(*k.AtOnce), fmt.Sprintf("%d ± %d clients at once, %s", *k.AtOnce, k.AtOnceError, k.Cause)
	}
	low, high, tries := t.bisected()
	found := fmt.Sprintf("%.1f to %.1f in %d runs", low, high, tries)
	spread := math.Max(within*(low+high)/2, high-low)
	if t.atOnce > 0 {
		spread = math.Max(spread, float64(k.AtOnceError))
	}
	off := math.Max(0, math.Max(t.forLong(low)-said, said-high))
	t.Holds(off <= spread, "%.1f beyond what the bisection found", off)
	t.Row.Truth, t.Row.Said = found, text
	t.Row.Cells = []string{text, found, t.Row.Result(), t.applied(l)}
	if len(t.Row.Wrong) > 0 {
		t.Row.Cells[2] = t.Row.Result()
	}
}

// forLong is the least rate that is served for long where one is served as long as it stays: what comes
// beyond it waits, and is in time until it has waited as long as the SLO allows.
func (t *trial) forLong(rate float64) float64 {
	if t.atOnce > 0 {
		return rate
	}
	return rate / (1 + t.slo.Seconds()/stays.Seconds())
}

// start replaces the server.
func (t *trial) start(l limits) {
	t.Unwind()
	var server *rig.Server
	if t.server != nil {
		server = t.server(t.Case)
	} else {
		server = t.Boot("none", rig.JVM{}, "server.port=8080", fmt.Sprint("server.tomcat.threads.max=", l.threads),
			fmt.Sprint("server.tomcat.max-connections=", l.connections), fmt.Sprint("server.tomcat.accept-count=", l.accept))
	}
	t.Until("the server", func() bool { return t.Connects(rig.Port) })
	warming := *t // what is compiled first is no measure, and what takes long leaves one thread work for minutes
	warming.path = regexp.MustCompile(`\bms=\d+`).ReplaceAllString(t.path, "ms=1")
	warming.account(20, 20, 0, 4*time.Second)
	if t.cpus != "" {
		t.Quota(server, t.cpus)
	}
	t.idle()
}

// idle waits until the server has done what it was asked before: whose clients have left is worked on
// all the same.
func (t *trial) idle() {
	t.Within(2*time.Minute, "the server at rest", func() bool {
		t.Wait(time.Second)
		a := t.account(2, 2, 0, time.Second)
		return a.OK == a.Offered && a.Late == 0 && (t.slo == 0 || a.Max < t.slo.Seconds()/2 || t.atOnce > 0)
	})
}

// account is what clients of one load count; they are not observed.
func (t *trial) account(from, to float64, atOnce int, lasts time.Duration) (sum account) {
	out, err := exec.CommandContext(t.Ctx, t.clients, t.arguments(from, to, atOnce, lasts)...).Output()
	t.Must(err)
	t.Must(json.Unmarshal(out, &sum))
	return sum
}

// account is of the clients' own program.
type account struct {
	Offered     int     `json:"offered"`
	OK          int     `json:"ok"`
	Late        int     `json:"late"`
	Max         float64 `json:"max_seconds"`
	LatestBegin float64 `json:"latest_begin_seconds"`
}

func (t *trial) arguments(from, to float64, atOnce int, lasts time.Duration) []string {
	return []string{
		"-url", "http://127.0.0.1:8080" + t.path, "-from", fmt.Sprint(from), "-to", fmt.Sprint(to), "-at-once", strconv.Itoa(atOnce),
		"-for", lasts.String(), "-connect", t.connect.String(), "-request", "60s", "-slo", t.slo.String(), "-gap", t.gap.String(),
	}
}

// observed is the document of a run.
func (t *trial) observed(from, to float64, atOnce int) *api.Run {
	file := filepath.Join(t.Dir, "run.json")
	args := []string{"run", "--port", "8080", "--quiet", "--json", file, "--settle", "20s", "--slo", t.slo.String(), "--", t.clients}
	args = append(args, t.arguments(from, to, atOnce, rises)...)
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Ctx, t.Tcpdiag(), args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	t.Log(out.String())
	t.Must(err)
	doc, err := api.ReadRun(file)
	t.Must(err)
	if len(doc.Listeners) == 0 {
		t.Must(fmt.Errorf("no listener in the result"))
	}
	return doc
}

// serves reports whether all clients of a load were answered in time.
func (t *trial) serves(load float64) bool {
	t.idle()
	var a account
	if t.atOnce > 0 {
		a = t.account(0, 0, int(load), 0)
	} else {
		a = t.account(load, load, 0, stays)
	}
	t.Logf("%.1f: %+v", load, a)
	return a.OK == a.Offered && a.Late == 0
}

// bisected is the knee by many runs, twice.
func (t *trial) bisected() (low, high float64, tries int) {
	low = math.Inf(1)
	for range 2 {
		from, to := t.from, t.to
		if t.atOnce > 0 {
			from, to = 0, float64(t.atOnce)
		}
		served, lost, n := bisect(from, to, .03, t.atOnce > 0, t.serves)
		low, high, tries = math.Min(low, served), math.Max(high, lost), tries+n
	}
	if t.atOnce > 0 { // the last that was served is one below the first that was not
		high = math.Max(low, high-1)
	}
	return low, high, tries
}

// applied is what becomes of the same load, and of twice as much, with the settings proposed.
func (t *trial) applied(l *api.RunListener) string {
	if !t.settled {
		return "none proposed: " + l.SettingsUnknown
	}
	s := l.Settings
	t.Holds(s != nil && s.Smallest != nil && s.ForTwice != nil, "no settings are proposed")
	if s == nil || s.Smallest == nil || s.ForTwice == nil {
		return "none"
	}
	out := ""
	for i, p := range []*api.RunLimits{s.Smallest, s.ForTwice} {
		proposed := limits{p.Threads, p.MaxConnections, p.AcceptCount}
		t.start(proposed)
		times := i + 1
		a := t.account(t.to*float64(times), t.to*float64(times), t.atOnce*times, stays)
		lost := a.Offered - a.OK
		allowed := i * a.Offered / 10 // for twice the load within a tenth
		t.Holds(lost <= allowed, "with %s %d of %d were turned away", proposed, lost, a.Offered)
		if i > 0 {
			out += "<br>"
		}
		out += fmt.Sprintf("%s: %d of %d turned away, %d late, the slowest after %.1f s", proposed, lost, a.Offered, a.Late, a.Max)
	}
	return out
}
