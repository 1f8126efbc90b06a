package observability

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

const (
	burstServers = 10
	burstPort    = 8200 // of the first of them
	burstLasts   = 5 * time.Second
	burstEvery   = 6 * time.Second
	rareScrape   = time.Minute
)

// longBurst is one of them, and what was said of it.
type longBurst struct {
	after     time.Duration // the scrape before it
	ended     demo.Outcomes
	page      Notification // the first
	said      int          // clients turned away, by the alert when all of them are counted
	pagedIn   time.Duration
	sawLosing bool // a scrape did
}

// Ten servers, each with a burst of five seconds, which begin all along the time between two
// scrapes that are a minute apart, the last one across the second: each pages, with its clients. Of
// seven no scrape sees anything: neither a gauge nor a status says it any more.
func TestLongBurstsBetweenRareScrapes(t *testing.T) {
	a := artifacts(t)
	t.Parallel()
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
	seconds, _ := s.value(t, at)
	scrape := time.UnixMilli(int64(1000 * seconds))
	var bursts [burstServers]longBurst
	var running sync.WaitGroup
	for i := range bursts {
		time.Sleep(time.Until(scrape.Add(burstEvery/2 + time.Duration(i)*burstEvery)))
		bursts[i].after = time.Since(scrape)
		running.Go(func() { bursts[i].ended = burst(t, i) })
	}
	running.Wait()
	pages := func() map[string]Notification {
		out := make(map[string]Notification)
		for _, n := range slices.Backward(s.told("pager", "tcpdiag-rare")) {
			if n.Labels["alertname"] == "TcpdiagBacklogOverflow" && n.Status == "firing" {
				out[n.Labels["listener"]] = n
			}
		}
		return out
	}
	nettest.Within(t, 2*rareScrape, "each pages", func() bool { return len(pages()) == burstServers })
	for i := range bursts {
		b := &bursts[i]
		b.page = pages()[burstAddress(i)]
		b.pagedIn = b.page.At.Sub(scrape) - b.after
		b.sawLosing = s.wasLosing(t, burstAddress(i))
		t.Logf("%s | %s", b.page.Annotations["summary"], b.page.Annotations["description"])
		require.Regexp(t, "turns (clients|connections) away: ", b.page.Annotations["summary"]) // all come from one address
		require.NotZero(t, turnedAway(b.page.Annotations))
		require.NotZero(t, b.ended.Lost())
		require.False(t, b.sawLosing && b.after < rareScrape-burstLasts-15*time.Second, "no scrape sees the status of a burst that is over")
	}
	// What was in flight at the first scrape is counted at the next.
	wrong := func() (out []string) {
		alerts, err := s.prometheus.Alerts(t.Context())
		require.NoError(t, err)
		for i := range bursts {
			b := &bursts[i]
			for _, a := range alerts {
				if a.Labels["alertname"] == "TcpdiagBacklogOverflow" && a.Labels["listener"] == burstAddress(i) {
					b.said = turnedAway(a.Annotations)
				}
			}
			// Those that were ended with the burst had no answer either.
			if lost := b.ended.Lost(); b.said < lost-2 || b.said > lost+b.ended.Of(demo.Unfinished)+2 {
				out = append(out, fmt.Sprintf("%d by the alert, by the clients' own account %v", b.said, b.ended))
			}
		}
		return out
	}
	for until := scrape.Add(2*rareScrape + 30*time.Second); len(wrong()) > 0 && time.Now().Before(until); {
		time.Sleep(time.Second)
	}
	require.Empty(t, wrong())
	writeBursts(t, bursts[:])
}

// turnedAway is the number of clients in an alert's text, 0 without one.
func turnedAway(annotations map[string]string) (n int) {
	if said := regexp.MustCompile(`^([1-9]\d*)(?: of \d+)? (?:client|connection)s? got no answer in the last 3 minutes`).FindStringSubmatch(annotations["description"]); said != nil {
		n, _ = strconv.Atoi(said[1])
	}
	return n
}

// wasLosing reports whether a scrape has seen a listener so.
func (s *stack) wasLosing(t *testing.T, listener string) bool {
	t.Helper()
	v, known := s.value(t, fmt.Sprintf(`max_over_time(tcpdiag_listener_status{job="tcpdiag-rare",status="losing",listener=%q}[5m])`, listener))
	require.True(t, known)
	return v > 0
}

// writeBursts writes docs/results/bursts.md, as a proof.
func writeBursts(t *testing.T, all []longBurst) {
	if !proof.Full() {
		return
	}
	var rows strings.Builder
	for i, b := range all {
		status := "no"
		if b.sawLosing {
			status = "yes"
		}
		fmt.Fprintf(&rows, "| %d | %.1f s | %d | %d | %d | %d | %s | %.0f s |\n", i+1, b.after.Seconds(),
			b.ended.Of(demo.OK), b.ended.Lost(), b.ended.Of(demo.Unfinished), b.said, status, b.pagedIn.Seconds())
	}
	text := fmt.Sprintf(`# Bursts between rare scrapes

Written by the proof `+"`bursts`"+`: one agent, ten servers with Tomcat's limits (2 threads, 4 connections, acceptCount 2,
300 ms a request), and a Prometheus with the delivered rules that scrapes the agent every %.0f s. Each server has one
burst of %.0f s, with 30 clients a second that wait 0.8 s for their connection and 2 s for an answer. They begin all along
the time between two scrapes; the last one lasts beyond the second.

Each pages, by TcpdiagBacklogOverflow. Answered, turned away and ended with the burst are the clients' own account; those that
were ended with it had no answer either. What the alert says is of the time when all are counted.

| burst | begins after the scrape | answered | turned away | ended with the burst | turned away, says the alert | a scrape saw the status losing | paged after its begin |
|---|---|---|---|---|---|---|---|
%s`, rareScrape.Seconds(), burstLasts.Seconds(), rows.String())
	require.NoError(t, os.WriteFile("../../../docs/results/bursts.md", []byte(text), 0o644))
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
