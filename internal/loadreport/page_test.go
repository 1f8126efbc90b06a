package loadreport_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/loadreport"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/runreport"
)

// document is a run of an overload: nobody lost for ten seconds, then some.
func document(seconds int) *api.Run {
	d := &api.Run{
		Schema: api.RunSchema, Began: time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC), Seconds: float64(seconds), Command: "k6",
		Status: "losing", Host: "web-1", Kernel: "6.18.0", Version: "1.2.3", SLOSeconds: 1,
		Unavailable: []api.Unavailable{{What: "environ of pid 42", Why: "permission denied", How: "run as root"}},
	}
	l := api.RunListener{
		Address: "[::]:8080", Port: 8080, Process: "java", PID: 42, Status: "losing", Cause: "max_connections",
		Clients:    &api.RunClients{Offered: 100, Served: 90, TurnedAway: 10, GaveUp: 10},
		FirstLimit: &api.RunLimit{Cause: "max_threads", AtSeconds: 10, ClientsPerSecond: 40},
		InForce:    []api.RunSetting{{Name: "maxThreads", Value: 8, Source: "application.yml"}, {Name: "maxConnections", Value: -1}, {Name: "backlog in force", Value: 10}},
		Course:     api.RunCourse{WidthSeconds: 1},
		Verdict:    api.Verdict{Answer: &api.Answer{What: "x", Why: "All 8 threads are busy.", Not: "acceptCount."}},
	}
	for i := range seconds {
		n := uint64(i)
		p := api.RunPoint{T: float64(i), Offered: &n, Served: &n, TurnedAway: new(uint64(0)), AcceptQueue: min(i, 11), InService: new(min(i, 8)), Status: "ok"}
		if i > 10 {
			p.Dropped, p.TurnedAway, p.Status, p.Cause = 3, new(uint64(2)), "losing", "max_connections"
		}
		if i%2 == 0 { // not every second has a client of whom it is known
			p.FirstByte = &api.RunLatency{Clients: 1, P50Seconds: new(.2), P99Seconds: new(.4)}
		}
		l.Course.Points = append(l.Course.Points, p)
	}
	d.Listeners = []api.RunListener{l}
	return d
}

func draw(t *testing.T, r loadreport.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, loadreport.Write(&b, r))
	_, err := html.Parse(strings.NewReader(b.String()))
	require.NoError(t, err)
	return b.String()
}

func TestPage(t *testing.T) {
	page := draw(t, loadreport.Report{Run: document(20), Command: []string{"k6", "run", "-e", "NAME=it's <b>", "load.js"}})
	for _, want := range []string{
		"10 of 100 clients got no answer", "All 8 threads are busy.", "first limit: max_threads after 10 s",
		"k6 run -e &#39;NAME=it&#39;\\&#39;&#39;s &lt;b&gt;&#39; load.js", "application.yml", "no limit", "environ of pid 42",
		"on web-1, Linux 6.18.0", "tcpdiag 1.2.3", "packets dropped per second", "seconds to the first byte",
	} {
		require.Contains(t, page, want)
	}
	require.Equal(t, 5, strings.Count(page, `<line class="mark"`), "in each chart that shows anything: connections were not read")
	require.NotRegexp(t, `(src|href)=|<script|@import|url\(`, page, "nothing is loaded, and nothing runs")
	require.NotRegexp(t, `NaN|Inf|%!`, page)
}

// What a stranger has named stays text, and what has no shape of its own is shown.
// Packets are dropped of clients that only wait for that, and are served: nobody is lost.
func TestPageOfARunThatLostNobody(t *testing.T) {
	run := document(20)
	l := &run.Listeners[0]
	l.Clients = &api.RunClients{Offered: 100, Served: 100, Answered: new(uint64(100)), Delayed: 10}
	l.Knee = &api.RunKnee{Reached: true, ClientsPerSecond: 24.7, Error: 42.1, Beyond: new(40.)}
	for i := range l.Course.Points {
		l.Course.Points[i].TurnedAway = new(uint64(0))
	}
	page := draw(t, loadreport.Report{Run: run})
	for _, want := range []string{"Dropped packets of clients on :8080", "All 100 clients got an answer", "first drop after 11 s", "up to about 25 clients/s (it varied by more from second to second); packets were dropped from 40 clients/s on"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "Lost clients")
	var screen bytes.Buffer
	require.NoError(t, runreport.Text(&screen, run, nil, render.TextOptions{Width: 80}))
	require.Contains(t, screen.String(), "DROPPED PACKETS  :8080")
	require.NotContains(t, page, "clients were lost")
	l.Clients.Checks = new(uint64(5))
	require.Contains(t, draw(t, loadreport.Report{Run: run}), "100 clients got an answer. 5 more connected and sent nothing: they only check the port, or had given up before they were let in.")
	l.Clients.Delayed = 0
	require.Contains(t, draw(t, loadreport.Report{Run: run}), "All 100 clients got an answer. 5 more connected and sent nothing.")
	none := *l.Clients
	l.Clients = &api.RunClients{Checks: none.Checks, Answered: none.Answered}
	require.Contains(t, draw(t, loadreport.Report{Run: run}), "No client sent a request. 5 connected and sent nothing.")
	l.Clients = &none
	l.Clients.HalfOpen, l.Clients.Served = 2, 98
	require.Contains(t, draw(t, loadreport.Report{Run: run}), "98 of 100 clients got an answer.")
	l.Clients.Answered = nil // TLS
	require.Contains(t, draw(t, loadreport.Report{Run: run}), "98 of 100 clients got in, and whether they had an answer was not seen. 5 more connected")
	l.Clients.Open = 1
	require.Contains(t, draw(t, loadreport.Report{Run: run}), "Lost clients on :8080")
}

func TestPageOfStrangers(t *testing.T) {
	d := document(3)
	evil := "<script>alert(1)</script>\u202e\x1b[2J"
	d.Host, d.Listeners[0].Process, d.Listeners[0].InForce[0].Source, d.Command = evil, evil, evil, evil
	page := draw(t, loadreport.Report{Run: d, Command: []string{evil}})
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "\u202e")
	require.NotContains(t, page, "\x1b")
}

// A run of an hour has no more in its charts than fits, and the other run is drawn over it.
func TestPageIsBounded(t *testing.T) {
	now, before := document(3600), document(1800)
	page := draw(t, loadreport.Report{Run: now, Before: before})
	require.Less(t, len(page), 400_000)
	require.Contains(t, page, "Compared with the run before")
	require.Contains(t, page, "offered before")
	for _, width := range regexp.MustCompile(`viewBox="0 0 (\d+) 40"`).FindAllStringSubmatch(page, -1) {
		require.Equal(t, "240", width[1], "15 seconds in each column")
	}
}

func TestPageWithoutAServer(t *testing.T) {
	require.Contains(t, draw(t, loadreport.Report{Run: &api.Run{Command: "true"}}), "No server was found")
	require.Contains(t, draw(t, loadreport.Report{Run: &api.Run{Command: "true", Problem: "no kernel"}}), "Nothing was observed: no kernel")
}
