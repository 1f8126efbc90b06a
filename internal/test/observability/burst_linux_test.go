package observability

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	burstServers = 10
	burstPort    = 8200 // of the first of them
	burstLasts   = 5 * time.Second
	rareScrape   = time.Minute
)

// Ten servers, each with a burst of five seconds at another moment between two scrapes
// that are a minute apart: each pages, with its clients. At every scrape all of them are
// quiet again: neither a gauge nor a status has anything to say.
func TestLongBurstsBetweenRareScrapes(t *testing.T) {
	a := artifacts(t)
	s := &stack{started: time.Now()}
	var ports []string
	for i := range burstServers {
		server, err := demo.Listen(t.Context(), demo.ServerOptions{
			Address: burstAddress(i), MaxConnections: 4, AcceptCount: 2, MaxThreads: 2, ServiceTime: 300 * time.Millisecond,
		})
		require.NoError(t, err)
		go func() { _ = server.Serve(t.Context()) }()
		ports = append(ports, "--port", fmt.Sprint(burstPort+i))
	}
	agent, err := a.StartAgent(t.Context(), 10892, append(ports, "--max-connections", "4", "--max-threads", "2")...)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = agent.Stop() })
	s.watchAt(t, Job{Name: "tcpdiag-rare", Target: agent.Address, ScrapeInterval: rareScrape}, 15*time.Second)

	at := `timestamp(up{job="tcpdiag-rare"})`
	nettest.Within(t, rareScrape+30*time.Second, "the first scrape", func() bool { now, _ := s.value(t, at); return now > 0 })
	first, _ := s.value(t, at)
	ended := make([]demo.Outcomes, burstServers)
	var bursts sync.WaitGroup
	for i := range burstServers {
		time.Sleep(3 * time.Second) // the last one's status is over before the next scrape
		bursts.Go(func() { ended[i] = burst(t, i) })
	}
	bursts.Wait()
	second, _ := s.value(t, at)
	require.InDelta(t, first, second, 1, "all bursts are between two scrapes")
	pages := func() map[string]Notification {
		out := make(map[string]Notification)
		for _, n := range s.told("pager", "tcpdiag-rare") {
			if n.Labels["alertname"] == "TcpdiagBacklogOverflow" && n.Status == "firing" {
				out[n.Labels["listener"]] = n
			}
		}
		return out
	}
	nettest.Within(t, 2*rareScrape, "each pages", func() bool { return len(pages()) == burstServers })
	for i := range burstServers {
		page := pages()[burstAddress(i)]
		t.Logf("%s | %s", page.Annotations["summary"], page.Annotations["description"])
		require.Contains(t, page.Annotations["summary"], "turns clients away: ")
		said := regexp.MustCompile(`^([1-9]\d*) clients? got no answer in the last 3 minutes`).FindStringSubmatch(page.Annotations["description"])
		require.NotNil(t, said)
		n, err := strconv.Atoi(said[1])
		require.NoError(t, err)
		// Those that were ended with the burst had no answer either.
		lost := ended[i].Lost()
		require.NotZero(t, lost)
		require.GreaterOrEqual(t, n, lost-2, "by the clients' own account: %v", ended[i])
		require.LessOrEqual(t, n, lost+ended[i].Of(demo.Unfinished)+2, "by the clients' own account: %v", ended[i])
	}
	v, _ := s.value(t, `max(max_over_time(tcpdiag_listener_status{status="losing"}[5m]))`)
	require.Zero(t, v, "no scrape has seen a losing listener")
}

func burstAddress(i int) string { return fmt.Sprintf("127.0.0.1:%d", burstPort+i) }

// burst is five seconds of more clients than there is room for.
func burst(t *testing.T, i int) demo.Outcomes {
	ctx, cancel := context.WithTimeout(t.Context(), burstLasts)
	defer cancel()
	load, err := demo.NewLoad(demo.BurstOptions{
		Address: burstAddress(i), Clients: 150, Rate: 30, ConnectTimeout: 800 * time.Millisecond, RequestTimeout: 2 * time.Second,
	})
	if err != nil {
		t.Error(err)
		return demo.Outcomes{}
	}
	return load.Run(ctx)
}

// watchAt starts the delivered rules and routes beside one job.
func (s *stack) watchAt(t *testing.T, job Job, evaluation time.Duration) {
	t.Helper()
	rules, err := filepath.Abs(rulesDir)
	require.NoError(t, err)
	s.receiver, err = StartReceiver(t.Context(), "127.0.0.1:9199", nil)
	require.NoError(t, err)
	t.Cleanup(s.receiver.Stop)
	s.alertmanager, err = StartAlertmanager(t.Context(), AlertmanagerOptions{
		Dir: t.TempDir(), Address: "127.0.0.1:9193", Config: filepath.Join(rules, "alertmanager.yml"),
		Receiver: s.receiver.URL(), GroupWait: time.Second, GroupInterval: time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(s.alertmanager.Stop)
	s.prometheus, err = StartPrometheus(t.Context(), PrometheusOptions{
		Dir: t.TempDir(), Address: "127.0.0.1:9190", Rules: rules, EvaluationInterval: evaluation,
		Alertmanager: s.alertmanager.Address, Jobs: []Job{job},
	})
	require.NoError(t, err)
	t.Cleanup(s.prometheus.Stop)
}
