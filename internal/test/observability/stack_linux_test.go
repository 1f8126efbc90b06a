package observability

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// Where everything listens, in a namespace of its own.
const (
	pagePort      = 8080 // Tomcat's connector that is overloaded for seconds
	lastingPort   = 8081 // its second one, overloaded all the time
	shortPort     = 8090 // a listener that overflows between two scrapes
	absentPort    = 8091 // expected by the same agent, and never there
	evaluation    = 5 * time.Second
	scrape        = time.Second
	shortScrape   = 15 * time.Second
	threads       = 4
	connections   = 20
	acceptCount   = 5
	queueCapacity = acceptCount + 1
)

// stack is the whole thing: a Tomcat with two connectors, an agent for each
// listener (a job each, so that nothing is grouped that must be counted
// apart), Prometheus, Alertmanager and the receiver of its webhooks.
type stack struct {
	tomcat       *rig.Tomcat
	agents       map[string]*rig.Agent // by job
	short        *demo.Server
	prometheus   *Prometheus
	alertmanager *Alertmanager
	receiver     *Receiver
	started      time.Time
}

func startStack(t *testing.T, a rig.Artifacts) *stack {
	t.Helper()
	ctx := t.Context()
	s := &stack{agents: make(map[string]*rig.Agent)}
	limits := rig.Limits{Threads: threads, MinSpare: threads, MaxConnections: connections, AcceptCount: acceptCount}
	var err error
	s.tomcat, err = rig.StartTomcat(ctx, rig.TomcatOptions{
		Artifacts: a, Limits: limits, Port: pagePort, ManagementPort: 8082, ExtraPort: lastingPort, ExtraLimits: limits,
	})
	require.NoError(t, err)
	t.Cleanup(s.tomcat.Stop)
	s.short, err = demo.Listen(ctx, demo.ServerOptions{
		Address: "127.0.0.1:" + strconv.Itoa(shortPort), MaxConnections: 100, AcceptCount: acceptCount, MaxThreads: 100,
	})
	require.NoError(t, err)

	// The second connector's limits are set in code, and the third listener is
	// no Tomcat: nobody can discover them.
	s.agent(t, a, "tcpdiag", 10889, pagePort)
	s.agent(t, a, "tcpdiag-lasting", 10890, lastingPort, "--max-connections", strconv.Itoa(connections), "--max-threads", strconv.Itoa(threads))
	s.agent(t, a, "tcpdiag-short", 10891, shortPort, "--port", strconv.Itoa(absentPort), "--max-connections", "100", "--max-threads", "100")
	s.overload(t, s.tomcat.ExtraAddress())
	s.watch(t)
	return s
}

func (s *stack) agent(t *testing.T, a rig.Artifacts, job string, address, port int, more ...string) {
	t.Helper()
	agent, err := a.StartAgent(t.Context(), address, append([]string{"--port", strconv.Itoa(port)}, more...)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := agent.Stop()
		require.NoError(t, err)
	})
	s.agents[job] = agent
}

// watch starts what watches the agents: the delivered rules, routes and
// inhibition with short intervals.
func (s *stack) watch(t *testing.T) {
	t.Helper()
	rules, err := filepath.Abs(rulesDir)
	require.NoError(t, err)
	s.receiver, err = StartReceiver(t.Context(), "127.0.0.1:9099", func(n Notification) {
		t.Logf("%s: %s %s of job %s: %s", n.Receiver, n.Status, n.Labels["alertname"], n.Labels["job"], n.Annotations["summary"])
	})
	require.NoError(t, err)
	t.Cleanup(s.receiver.Stop)
	s.alertmanager, err = StartAlertmanager(t.Context(), AlertmanagerOptions{
		Dir: t.TempDir(), Address: "127.0.0.1:9093", Config: filepath.Join(rules, "alertmanager.yml"),
		Receiver: s.receiver.URL(), GroupWait: time.Second, GroupInterval: time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(s.alertmanager.Stop)
	o := PrometheusOptions{
		Dir: t.TempDir(), Address: "127.0.0.1:9090", Rules: rules, EvaluationInterval: evaluation,
		Alertmanager: s.alertmanager.Address,
	}
	for job, agent := range s.agents {
		j := Job{Name: job, Target: agent.Address, ScrapeInterval: scrape}
		if job == "tcpdiag-short" {
			j.ScrapeInterval = shortScrape
		}
		o.Jobs = append(o.Jobs, j)
	}
	s.started = time.Now()
	s.prometheus, err = StartPrometheus(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(s.prometheus.Stop)
}

// overload fills a listener for good with clients that ask again and again,
// and lets others come all the time. The returned function ends it.
func (s *stack) overload(t *testing.T, address string) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	loads := []demo.BurstOptions{
		{Clients: connections + queueCapacity, Rate: 50, Requests: -1}, // not all at once: that alone is more than the queue holds
		{Clients: 2000, Rate: 8, ConnectTimeout: 3 * time.Second},
	}
	done := make(chan struct{}, len(loads))
	for _, o := range loads {
		o.Address, o.Path = address, "/hello?ms=1000"
		load, err := demo.NewLoad(o)
		require.NoError(t, err)
		go func() { load.Run(ctx); done <- struct{}{} }()
	}
	leave = func() {
		cancel()
		for range loads {
			<-done
			done <- struct{}{}
		}
	}
	t.Cleanup(leave)
	return leave
}

// value is that of an expression with one series, and false without one.
func (s *stack) value(t *testing.T, expr string) (float64, bool) {
	t.Helper()
	got, err := s.prometheus.Query(t.Context(), expr)
	require.NoError(t, err)
	if len(got) == 0 {
		return 0, false
	}
	require.Len(t, got, 1, expr)
	return got[0].Values[0], true
}

// scraped waits until a job has been scraped n times.
func (s *stack) scraped(t *testing.T, job string, n float64) {
	t.Helper()
	nettest.Within(t, 60*time.Second, job+" is scraped", func() bool {
		v, _ := s.value(t, `count_over_time(up{job="`+job+`"}[5m])`)
		return v >= n
	})
}

// told are a job's notifications of one receiver.
func (s *stack) told(receiver, job string) (out []Notification) {
	for _, n := range s.receiver.Got() {
		if n.Receiver == receiver && n.Labels["job"] == job {
			out = append(out, n)
		}
	}
	return out
}
