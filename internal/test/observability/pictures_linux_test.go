package observability

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const (
	drawnLosing = 8501 + iota
	drawnQuiet
	drawnHealthy
	drawnDown
	drawnManagement // and the next two
	drawnCalm       = 8520

	calmServers = 29
	drawnScrape = 5 * time.Second
	drawnFor    = 220 * time.Second
	drawnSite   = "127.0.0.1:9390"
)

// picture is one dashboard of one job, and what it must say.
type picture struct {
	dashboard, job string
	port           int // of the listener that is chosen
	unfolded       bool
	screens        []string
	says           map[string]string // by panel, a regular expression
}

func pictures() []picture {
	dark, all := []string{"wide-dark"}, []string{"wide-dark", "wide-light", "phone-dark", "phone-light"}
	losing := map[string]string{"Status": `losing`, "Why": `(all threads busy|maxConnections reached)`, "Room in use": `100%`, "Clients turned away": `[1-9]`, "Dropped now": `[1-9]`}
	return []picture{
		{"backlog", "healthy", drawnHealthy, false, dark, map[string]string{"Status": `ok`, "Why": `nothing`, "Clients turned away": `\n0$`, "Dropped now": `\n0\b`}},
		{"backlog", "losing", drawnLosing, false, all, losing},
		{"backlog", "losing", drawnLosing, true, dark, losing},
		{"backlog", "quiet", drawnQuiet, false, dark, map[string]string{"Status": `ok`, "Why": `nothing`, "Clients turned away": `[1-9]`, "Dropped now": `\n0\b`, "Status over time, where not ok": `.`}},
		{"backlog", "not-followed", drawnLosing, false, dark, map[string]string{"Status": `losing`, "Clients turned away": `not counted`, "Clients beside the room for them": `packets dropped`}},
		{"backlog", "down", drawnDown, false, dark, map[string]string{"Status": `down`, "Why": `nothing listens`}},
		{"fleet", "healthy", 0, false, dark, map[string]string{"Clients turned away": `\n0$`, "Losing": `none`, "Ports down": `\n0$`}},
		{"fleet", "losing", 0, false, all, map[string]string{"Listeners, worst first": `losing`, "Clients turned away": `[1-9]`, "Losing": `\n1$`}},
		{"fleet", "losing", 0, true, dark, map[string]string{"Losing": `\n1$`}},
		{"fleet", "quiet", 0, false, dark, map[string]string{"Clients turned away": `[1-9]`, "Losing": `none`, "Top losses": `[1-9]`}},
		{"fleet", "not-followed", 0, false, dark, map[string]string{"Clients turned away": `not counted`, "Losing": `\n1$`}},
		{"fleet", "down", 0, false, dark, map[string]string{"Ports down": `\n1$`, "Ports without a listener": fmt.Sprint(drawnDown), "Listeners, worst first": `down`}},
		{"fleet", "thirty", 0, false, dark, map[string]string{"Listeners, worst first": `losing`, "Listeners watched": `30`}},
	}
}

func (p *picture) name() string {
	name := "dashboard-" + p.dashboard + "-" + p.job
	if p.unfolded {
		name += "-unfolded"
	}
	return name
}

// TestFullDashboardPictures draws both dashboards with Grafana's own components, of what a real Prometheus has of
// servers in every state, and holds what each picture says.
func TestFullDashboardPictures(t *testing.T) {
	proof.Skip(t)
	root, err := rig.ModuleRoot()
	require.NoError(t, err)
	built := filepath.Join(root, ".cache", "dashboards")
	require.FileExists(t, filepath.Join(built, "site", "page.js"), "make prove PROOF=dashboards builds it")
	out := filepath.Join(root, "docs", "pictures")
	if !proof.Full() {
		out = t.TempDir()
	}
	s := newFired(t, artifacts(t))
	s.everyState()
	time.Sleep(time.Until(s.started.Add(drawnFor)))
	drawn := serveDrawing(t, filepath.Join(built, "site"))
	to := time.Now().Truncate(drawnScrape)
	for _, p := range pictures() {
		asked := url.Values{
			"dashboard": {p.dashboard}, "prometheus": {s.prometheus.URL()}, "scrape": {fmt.Sprint(drawnScrape.Seconds())}, "var-job": {p.job},
			"from": {fmt.Sprint(to.Add(-drawnFor).UnixMilli())}, "to": {fmt.Sprint(to.UnixMilli())},
		}
		if p.port != 0 {
			asked.Set("var-listener", s.listener(t, p.port))
		}
		if p.unfolded {
			asked.Set("unfold", "")
		}
		for _, screen := range p.screens {
			t.Run(p.name()+"-"+screen, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), filepath.Join(built, "shoot"), "-until", "[data-drawn]", "http://"+drawnSite+"/?"+asked.Encode(), filepath.Join(out, p.name()), screen)
				printed, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", printed)
				p.hold(t, drawn(), strings.HasPrefix(screen, "wide"))
			})
		}
	}
}

// page is what a dashboard says once it is drawn.
type page struct {
	Error  string
	Panels []struct {
		Title, Text string
		Cut         []string
		Scrolled    bool // a part of the legend is out of sight
		Narrow      bool // a column is
	}
}

// hold holds what every picture must not have, and what this one must say.
func (p *picture) hold(t *testing.T, got page, wide bool) {
	ranked := []string{"Fullest accept queues", "Fullest servers", "Abandoned requests"} // the highest are first
	require.Empty(t, got.Error)
	says := make(map[string]string)
	for _, one := range got.Panels {
		says[one.Title] = one.Text
		require.NotRegexp(t, `(?i)\bno data\b|\bNaN\b|undefined|Value #`, one.Text)
		require.False(t, wide && one.Narrow, "%s: a column is out of sight", one.Title)
		require.False(t, wide && one.Scrolled && !slices.Contains(ranked, one.Title), "%s: a part of the legend is out of sight", one.Title)
		if wide {
			require.Empty(t, one.Cut, "%s: words that are cut", one.Title)
		}
	}
	for title, want := range p.says {
		require.Regexp(t, regexp.MustCompile(want), says[title], title)
	}
}

// serveDrawing serves the page that draws a dashboard, and answers what the latest one said.
func serveDrawing(t *testing.T, site string) (latest func() page) {
	var got page
	var m sync.Mutex
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(site)))
	mux.Handle("/dashboards/", http.StripPrefix("/dashboards/", http.FileServer(http.Dir(dashboardsDir))))
	mux.HandleFunc("POST /drawn", func(_ http.ResponseWriter, r *http.Request) {
		m.Lock()
		defer m.Unlock()
		got = page{}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			got.Error = err.Error()
		}
	})
	l, err := net.Listen("tcp", drawnSite)
	require.NoError(t, err)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return func() page {
		m.Lock()
		defer m.Unlock()
		return got
	}
}

// listener is the label of one that an agent has, or had, on a port.
func (s *stack) listener(t *testing.T, port int) string {
	t.Helper()
	got, err := s.prometheus.Query(t.Context(), fmt.Sprintf(`group by (listener) (last_over_time(tcpdiag_listener_info{port="%d"}[%s]))`, port, s.shown()))
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0].Labels["listener"]
}

// everyState has a server in each state, an agent of each, and a Prometheus that has seen how it came to it.
func (f *fired) everyState() {
	t := f.t
	for i, port := range []int{drawnLosing, drawnQuiet, drawnHealthy} {
		tomcat, err := rig.StartTomcat(t.Context(), rig.TomcatOptions{
			Artifacts: f.rig, Port: port, ManagementPort: drawnManagement + i,
			Limits: rig.Limits{Threads: threads, MinSpare: threads, MaxConnections: connections, AcceptCount: acceptCount},
		})
		require.NoError(t, err)
		t.Cleanup(tomcat.Stop)
	}
	var specs []string
	var calm []int
	for port := drawnCalm; port < drawnCalm+calmServers; port++ {
		specs, calm = append(specs, spec(port, connections, threads, acceptCount)), append(calm, port)
	}
	f.serve(nil, specs...)
	dying := f.serve(nil, spec(drawnDown, connections, threads, acceptCount))

	limits := []string{"--max-connections", fmt.Sprint(connections), "--max-threads", fmt.Sprint(threads)}
	few := slices.Concat(limits, listeners(calm[:4]...))
	f.watchedBy("losing", append(listeners(drawnLosing), few...)...)
	f.watchedBy("quiet", append(listeners(drawnQuiet), few...)...)
	f.watchedBy("healthy", append(listeners(drawnHealthy), few...)...)
	f.watchedBy("down", append(listeners(drawnDown), few...)...)
	f.watchedBy("thirty", slices.Concat(limits, listeners(drawnLosing), listeners(calm...))...)
	f.unprivileged("not-followed", append(listeners(drawnLosing), few...)...)
	rules, err := filepath.Abs(rulesDir)
	require.NoError(t, err)
	f.started = time.Now()
	f.prometheus, err = StartPrometheus(t.Context(), PrometheusOptions{Dir: t.TempDir(), Address: "127.0.0.1:9490", Rules: rules, EvaluationInterval: drawnScrape, Jobs: f.jobs})
	require.NoError(t, err)
	t.Cleanup(f.prometheus.Stop)

	for _, port := range append([]int{drawnDown}, calm...) {
		f.clients(port, demo.BurstOptions{Path: "/?ms=50", Rate: .5}, 10_000)
	}
	for _, port := range []int{drawnLosing, drawnQuiet, drawnHealthy} {
		f.clients(port, demo.BurstOptions{Path: "/hello?ms=300", Requests: -1, Think: time.Second}, 3)
	}
	time.Sleep(20 * time.Second)
	leave := f.overload(t, local(drawnQuiet))
	time.Sleep(30 * time.Second)
	f.clients(drawnLosing, demo.BurstOptions{Path: "/hello?ms=1000", Rate: 50, Requests: -1}, connections+queueCapacity)
	f.clients(drawnLosing, demo.BurstOptions{Path: "/hello?ms=1000", Rate: 8, ConnectTimeout: 3 * time.Second}, 6000)
	time.Sleep(15 * time.Second)
	leave()
	time.Sleep(30 * time.Second)
	require.NoError(t, syscall.Kill(dying, syscall.SIGKILL))
	nettest.Within(t, 2*time.Minute, "two see that clients are lost, one that they were, one is gone", func() bool {
		n, _ := f.value(t, `count(tcpdiag_listener_status{job=~"losing|not-followed",status="losing"} == 1) + count(tcpdiag_listener_status{job="quiet",status="ok"} == 1) + sum(1 - tcpdiag_target_up{job="down"})`)
		return n == 2+5+1 // each agent has four more that are calm
	})
}

// unprivileged starts an agent without CAP_NET_RAW, which is a job of its own.
func (f *fired) unprivileged(job string, args ...string) {
	f.t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", 10900+len(f.jobs))
	line := append([]string{"--inh-caps", "-net_raw", "--bounding-set", "-net_raw", f.rig.Tcpdiag}, rig.AgentArgs(address, args)...)
	cmd := exec.Command("setpriv", line...)
	cmd.SysProcAttr = rig.DiesWithParent()
	agent, err := rig.RunAgent(f.t.Context(), address, cmd)
	require.NoError(f.t, err)
	f.watched(job, agent)
}
