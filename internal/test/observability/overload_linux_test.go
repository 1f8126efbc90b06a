package observability

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Three overloads at the same time, seen by real servers with the delivered
// rules: one that comes and goes, one that lasts until all that it shows
// elsewhere would be reported too, and one that is over before anybody looks.
// Afterwards the dashboards are asked what they show of it.
func TestOverload(t *testing.T) {
	a := artifacts(t)
	t.Parallel()
	s := startStack(t, a)
	t.Run("stories", func(t *testing.T) {
		t.Run("one page, and the end of it", func(t *testing.T) { t.Parallel(); s.onePage(t) })
		t.Run("symptoms are inhibited", func(t *testing.T) { t.Parallel(); s.symptoms(t) })
		t.Run("shorter than the scrape interval", func(t *testing.T) { t.Parallel(); s.shorter(t) })
		t.Run("native histograms", func(t *testing.T) { t.Parallel(); s.native(t) })
	})
	t.Run("no empty panel", s.panels)
}

func (s *stack) onePage(t *testing.T) {
	s.scraped(t, "tcpdiag", 3)
	start := time.Now()
	leave := s.overload(t, s.tomcat.Address())
	nettest.Within(t, time.Minute, "the page", func() bool { return len(s.told("pager", "tcpdiag")) > 0 })
	t.Logf("paged after %v", time.Since(start))
	page := s.told("pager", "tcpdiag")[0]
	require.Equal(t, "firing", page.Status)
	require.Equal(t, "TcpdiagBacklogOverflow", page.Labels["alertname"])
	require.Equal(t, "critical", page.Labels["severity"])
	require.Equal(t, s.agents["tcpdiag"].Address, page.Labels["instance"])
	require.Regexp(t, `:8080$`, page.Labels["listener"])
	require.Equal(t, "8080", page.Labels["port"])
	require.NotEmpty(t, page.Labels["netns"])
	require.NotContains(t, page.Labels, "cause", "it can change while the overload lasts, and would page again")
	require.Equal(t, "max_connections", page.Annotations["cause"])
	require.Regexp(t, `^java:8080 \(127\.0\.0\.1:10889\) (turns (clients|connections) away|keeps (clients|connections) waiting): .*20/20 connections$`, page.Annotations["summary"])
	require.Contains(t, page.Annotations["description"], "the accept queue (6: acceptCount + 1)")
	require.Contains(t, page.Annotations["description"], page.Labels["listener"])
	require.Regexp(t, `troubleshooting\.md#max_connections$`, page.Annotations["runbook_url"])
	require.Contains(t, page.Annotations["description"], "room for 26 clients")
	require.Contains(t, page.Annotations["runbook"], "server.tomcat.max-connections (maxConnections) from 20")
	// The scrape that has the first drops may be older than the first reading of the
	// threads, by some tenths of a second.
	nettest.Within(t, time.Minute, "the threads are named", func() bool {
		return strings.Contains(s.alert(t, page.Labels).Annotations["runbook"], "server.tomcat.threads.max (maxThreads) from 4")
	})

	leave()
	nettest.Within(t, 5*time.Minute, "it resolves", func() bool { return len(s.told("pager", "tcpdiag")) > 1 })
	pages := s.told("pager", "tcpdiag")
	require.Len(t, pages, 2)
	require.Equal(t, "resolved", pages[1].Status)
	require.Empty(t, s.told("tickets", "tcpdiag"))
}

// alert is the one with these labels, as Prometheus has it now.
func (s *stack) alert(t *testing.T, labels map[string]string) (out ActiveAlert) {
	t.Helper()
	alerts, err := s.prometheus.Alerts(t.Context())
	require.NoError(t, err)
	for _, a := range alerts {
		if maps.Equal(a.Labels, labels) {
			out = a
		}
	}
	return out
}

func (s *stack) symptoms(t *testing.T) {
	symptoms := []string{"TcpdiagAcceptQueueHigh", "TcpdiagMaxConnectionsReached", "TcpdiagThreadsExhausted"}
	var last []Alert
	inhibited := func() bool {
		var err error
		last, err = s.alertmanager.Alerts(t.Context())
		require.NoError(t, err)
		cause := slices.IndexFunc(last, func(a Alert) bool {
			return a.Labels["alertname"] == "TcpdiagBacklogOverflow" && a.Labels["job"] == "tcpdiag-lasting"
		})
		return cause >= 0 && !slices.ContainsFunc(symptoms, func(name string) bool {
			return !slices.ContainsFunc(last, func(a Alert) bool {
				return a.Labels["alertname"] == name && a.Labels["job"] == "tcpdiag-lasting" &&
					a.Status.State == "suppressed" && slices.Equal(a.Status.InhibitedBy, []string{last[cause].Fingerprint})
			})
		})
	}
	nettest.Within(t, 5*time.Minute, "the symptoms fire and are inhibited", inhibited) // evaluated once a minute, for a minute
	pages := s.told("pager", "tcpdiag-lasting")
	require.Len(t, pages, 1)
	require.Equal(t, "TcpdiagBacklogOverflow", pages[0].Labels["alertname"])
	require.Empty(t, s.told("tickets", "tcpdiag-lasting"))
}

// 800 ms of a full queue between two scrapes that are 15 s apart: 80 samples, of
// which a busy machine may miss some, and far less than what pages.
func (s *stack) shorter(t *testing.T) {
	s.scraped(t, "tcpdiag-short", 2)
	s.nextScrape(t)
	time.Sleep(3 * time.Second)
	s.fill(t, 800*time.Millisecond)
	s.nextScrape(t)

	const job = `{job="tcpdiag-short"}`
	processors := float64(runtime.NumCPU()) // each can put one in at the same time, see AcceptQueue.Capacity
	for expr, check := range map[string]func(float64) bool{
		`max_over_time(tcpdiag_listener_accept_queue_length` + job + `[5m])`:                                               func(v float64) bool { return v == 0 },
		`tcpdiag_listener_accept_queue_peak` + job:                                                                         func(v float64) bool { return v >= queueCapacity && v < queueCapacity+processors },
		`increase(tcpdiag_listener_accept_queue_full_seconds_total` + job + `[2m])`:                                        func(v float64) bool { return v > .2 && v < 3 },
		`sum(increase(tcpdiag_listener_dropped_packets_total{job="tcpdiag-short",cause=~"slow_accept|accept_queue"}[2m]))`: func(v float64) bool { return v >= 10 },
		`sum(increase(tcpdiag_listener_accept_queue_fill_ratio_count` + job + `[2m])) - sum(increase(tcpdiag_listener_accept_queue_fill_ratio_bucket{job="tcpdiag-short",le="0.8"}[2m]))`: func(v float64) bool { return v > 20 },
	} {
		v, ok := s.value(t, expr)
		require.True(t, ok && check(v), "%s is %v", expr, v)
	}
	s.visible(t)
	nettest.Within(t, 120*time.Second, "the ticket", func() bool { return len(s.told("tickets", "tcpdiag-short")) > 0 })
	ticket := s.told("tickets", "tcpdiag-short")[0]
	require.Equal(t, "TcpdiagBacklogFull", ticket.Labels["alertname"])
	require.Equal(t, "127.0.0.1:"+strconv.Itoa(shortPort), ticket.Labels["listener"])
	require.Regexp(t, "because of (slow_accept|accept_queue)", ticket.Annotations["description"])
	require.Empty(t, s.told("pager", "tcpdiag-short"))
}

func (s *stack) nextScrape(t *testing.T) {
	t.Helper()
	const at = `timestamp(up{job="tcpdiag-short"})`
	before, _ := s.value(t, at)
	nettest.Within(t, shortScrape+30*time.Second, "the next scrape", func() bool {
		now, _ := s.value(t, at)
		return now > before
	})
}

// fill lets clients come to a server that accepts nobody for this long.
func (s *stack) fill(t *testing.T, lasts time.Duration) {
	t.Helper()
	done := make(chan demo.Outcomes, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		outcomes, _ := demo.Burst(ctx, demo.BurstOptions{
			Address: s.short.Address().String(), Clients: 30, ConnectTimeout: 10 * time.Second,
		})
		done <- outcomes
	}()
	time.Sleep(lasts)
	served := make(chan struct{})
	go func() { defer close(served); _ = s.short.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-served })
	outcomes := <-done
	require.Equal(t, 30, outcomes.Of(demo.OK), "all get in when they try again: %v", outcomes)
}

// native runs a Prometheus that asks for native histograms, and then has no
// classic buckets: the rules know the same of the queue.
func (s *stack) native(t *testing.T) {
	o := s.prometheus.PrometheusOptions
	o.Dir, o.Address, o.Alertmanager, o.EvaluationInterval = t.TempDir(), "127.0.0.1:9091", "", scrape
	o.Flags = []string{"--enable-feature=native-histograms"}
	p, err := StartPrometheus(t.Context(), o)
	require.NoError(t, err)
	defer p.Stop()
	var got []Series
	nettest.Within(t, 3*time.Minute, "the share above 80 %", func() bool {
		got, err = p.Query(t.Context(), `listener:tcpdiag_accept_queue_above_80:ratio2m{job="tcpdiag-lasting"} > 0.5 and listener:tcpdiag_accept_queue_not_empty:ratio2m > 0.5`)
		require.NoError(t, err)
		return len(got) == 1
	})
	require.LessOrEqual(t, got[0].Values[0], 1.0)
	classic, err := p.Query(t.Context(), `tcpdiag_listener_accept_queue_fill_ratio_bucket`)
	require.NoError(t, err)
	require.Empty(t, classic)
}
