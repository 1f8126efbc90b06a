package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func listener(port uint16, status model.Status) model.Listener {
	l := model.Listener{
		ID: model.ListenerID{NetNS: 7, Address: netip.AddrPortFrom(netip.IPv6Unspecified(), port)}, Port: port,
		AcceptQueue: &model.AcceptQueue{Length: 21, Limit: 20},
		Connector:   &model.Connector{Server: "tomcat", Version: "10.1.55", MaxConnections: &model.Setting[int]{Value: 60}},
		Connections: &model.Connections{Accepted: 60},
		Limits:      []model.Limit{{Name: "accept_queue", Used: 21, Max: 21, Ratio: 1}, {Name: "max_threads", Used: 5, Max: 20, Ratio: .25}},
		Verdict:     model.Verdict{Status: status, Summary: "What <happened>.", Findings: []model.Finding{{Code: "a", Advice: "Raise it."}}},
	}
	l.Connections.Phases[model.InService], l.Connections.Phases[model.Waiting] = 20, 40
	if status > model.StatusOK {
		l.Verdict.Cause = model.CauseMaxConnections
	}
	return l
}

func snapshotOf(listeners ...model.Listener) *model.Snapshot {
	return &model.Snapshot{Time: now, Host: "web-1", Listeners: listeners}
}

// published is what is published, set by the test.
type published struct{ atomic.Pointer[model.Snapshot] }

func serve(t *testing.T, s *published) (*Server, *httptest.Server) {
	t.Helper()
	page, err := New(Options{Snapshot: s.Load, History: incident.NewHistory(), Now: func() time.Time { return now }, Interval: 10 * time.Millisecond, Version: "1.2.3"})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- page.Run(ctx) }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page.Page)
	mux.HandleFunc("GET /assets/", page.Asset)
	mux.HandleFunc("GET /api/v1/stream", page.Stream(always))
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
		server.Close() // waits for the streams: they must have ended
	})
	return page, server
}

// answer is a response whose body was read.
type answer struct {
	StatusCode int
	Header     http.Header
}

func get(t *testing.T, url string) (answer, string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, resp.Header}, string(body)
}

func TestPageWithoutScript(t *testing.T) {
	var s published
	_, server := serve(t, &s)
	_, body := get(t, server.URL)
	require.Contains(t, body, "first scan is not done")
	s.Store(snapshotOf(listener(8080, model.StatusOK), listener(8081, model.StatusLosing)))
	resp, body := get(t, server.URL)
	policy := resp.Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "script-src 'self'")
	require.NotContains(t, policy, "unsafe")
	for _, want := range []string{
		"<title>losing [::]:8081 max_connections - tcpdiag on web-1</title>", `<span class="badge losing">1 losing</span> <span class="badge ok">1 ok</span>`, "What &lt;happened&gt;.",
		"Clients inside: 81 of 81", "21 / 21", "FULL", "40 waiting for a thread", "Raise it.", `<noscript><meta http-equiv="refresh"`,
	} {
		require.Contains(t, body, want)
	}
	require.Less(t, strings.Index(body, "<code>[::]:8081</code>"), strings.Index(body, "<code>[::]:8080</code>"), "the worst first")
	require.NotRegexp(t, `(src|href)="(https?:)?//`, body, "nothing is loaded from elsewhere")
	require.NotRegexp(t, ` style=| on[a-z]+=`, body, "the policy forbids it")
}

func TestPermalink(t *testing.T) {
	var s published
	s.Store(snapshotOf(listener(8080, model.StatusOK), listener(8081, model.StatusLosing)))
	_, server := serve(t, &s)
	l := listener(8080, model.StatusOK)
	_, body := get(t, server.URL+"/"+permalink(&l))
	require.Contains(t, body, "<code>[::]:8080</code>")
	require.NotContains(t, body, "<code>[::]:8081</code>")
	require.Contains(t, body, "<title>losing [::]:8081", "the tab tells the worst all the same")
	_, body = get(t, server.URL+"/?listener=%3Cscript%3E")
	require.Contains(t, body, "&lt;script&gt; is not watched at present")
}

func TestPods(t *testing.T) {
	one, two := listener(8080, model.StatusOK), listener(8080, model.StatusLosing)
	one.Pod, two.Pod = &model.Pod{Namespace: "shop", Name: "orders-1", Container: "app"}, &model.Pod{Namespace: "shop", Name: "orders-2"}
	two.ID.NetNS++
	var s published
	s.Store(snapshotOf(one, two))
	_, server := serve(t, &s)
	_, body := get(t, server.URL)
	require.Contains(t, body, "shop/orders-1 (app)")
	require.Contains(t, body, "shop/orders-2")
	_, body = get(t, server.URL+"/"+permalink(&one))
	require.Contains(t, body, "shop/orders-1 (app)")
	require.NotContains(t, body, "shop/orders-2 ·", "the other pod listens on the same port")
}

func TestAssets(t *testing.T) {
	_, server := serve(t, new(published))
	total := 0
	for _, name := range []string{"page.css", "page.js"} {
		resp, body := get(t, server.URL+"/assets/"+name)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		total += len(body)
	}
	require.Less(t, total, 100_000)
	for _, name := range []string{"page.html", "", "../server.go"} {
		resp, _ := get(t, server.URL+"/assets/"+name)
		require.NotEqual(t, http.StatusOK, resp.StatusCode, name)
	}
}

// open is a stream; next waits for the update that fits.
type open struct {
	t     *testing.T
	lines *bufio.Scanner
	close func()
}

func stream(t *testing.T, url string) *open {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/stream", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { cancel(); _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &open{t, lines, func() { cancel(); _ = resp.Body.Close() }}
}

func (o *open) next(fits func(*update) bool) *update {
	o.t.Helper()
	for o.lines.Scan() {
		data, ok := strings.CutPrefix(o.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var u update
		require.NoError(o.t, json.Unmarshal([]byte(data), &u))
		if fits(&u) {
			return &u
		}
	}
	require.FailNow(o.t, "the stream ended")
	return nil
}

func TestStreamSendsWhatChanged(t *testing.T) {
	var s published
	s.Store(snapshotOf(listener(8080, model.StatusOK)))
	_, server := serve(t, &s)
	o := stream(t, server.URL)
	first := o.next(func(*update) bool { return true })
	require.Contains(t, *first.Main, "[::]:8080", "whoever connects again after a restart gets everything")
	quiet := o.next(func(u *update) bool { return len(u.Parts) == 0 })
	require.Nil(t, quiet.Main)
	s.Store(snapshotOf(listener(8080, model.StatusLosing)))
	changed := o.next(func(u *update) bool { return len(u.Parts) > 0 })
	require.Nil(t, changed.Main, "in place")
	require.Equal(t, "losing [::]:8080 max_connections - tcpdiag on web-1", changed.Title)
	l := listener(8080, model.StatusLosing)
	require.Equal(t, "losing", changed.Statuses[elementID(&l)])
	require.Contains(t, changed.Parts[elementID(&l)+"-h"], "Losing clients on :8080")
	s.Store(snapshotOf(listener(8080, model.StatusLosing), listener(8081, model.StatusOK)))
	require.Contains(t, *o.next(func(u *update) bool { return u.Main != nil }).Main, "[::]:8081")
}

func always(*http.Request) (leave func(), ok bool) { return func() {}, true }

// sentNext is the update that a page is sent next.
func sentNext(t *testing.T, o *openPage) (u update) {
	t.Helper()
	e, err := o.next()
	require.NoError(t, err)
	body, ok := bytes.CutPrefix(e, []byte("event: update\ndata: "))
	require.True(t, ok)
	require.True(t, bytes.HasSuffix(body, []byte("}\n\n")))
	require.NoError(t, json.Unmarshal(body, &u))
	return u
}

// A page that is opened is drawn in a turn, once for all that open it at that moment; without one it is not
// drawn, and an open page keeps what it has.
func TestDrawnInTurns(t *testing.T) {
	var s published
	s.Store(snapshotOf(listener(8080, model.StatusOK)))
	page, err := New(Options{Snapshot: s.Load, History: incident.NewHistory(), Now: func() time.Time { return now }, Interval: time.Second})
	require.NoError(t, err)
	taken, left, free := 0, 0, false
	turn := func(*http.Request) (func(), bool) {
		if free {
			taken++
		}
		return func() { left++ }, free
	}
	w := httptest.NewRecorder()
	page.Stream(turn)(w, httptest.NewRequest(http.MethodGet, "/api/v1/stream", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))

	free = true
	d := page.shared(choice{})
	opened := func() *openPage {
		return &openPage{server: page, drawing: d, turn: func() (func(), bool) { return turn(nil) }}
	}
	first := opened()
	for _, o := range []*openPage{first, opened(), opened()} {
		require.NotNil(t, sentNext(t, o).Main)
	}
	require.Equal(t, 1, taken)
	require.Equal(t, 1, left)

	free = false
	s.Store(snapshotOf(listener(8080, model.StatusOK), listener(8081, model.StatusOK)))
	require.Nil(t, sentNext(t, first).Main, "no turn")
	free = true
	require.Contains(t, *sentNext(t, first).Main, "[::]:8081")
	require.Equal(t, 2, left)
}

// However many pages are open, a snapshot is drawn once and encoded once: all are sent the same
// bytes, and one that has missed a snapshot what it lacks. What did not change is not drawn.
func TestDrawnOnceForAll(t *testing.T) {
	var s published
	page, err := New(Options{Snapshot: s.Load, History: incident.NewHistory(), Now: func() time.Time { return now }, Interval: time.Second})
	require.NoError(t, err)
	d := page.shared(choice{})
	var open []*openPage
	for range 10 {
		open = append(open, &openPage{server: page, drawing: d, turn: func() (func(), bool) { return always(nil) }})
	}
	publish := func(second int) {
		s.Store(crowd(second))
		page.options.History.Observe(s.Load())
	}
	allSent := func() (sent event) {
		for i, o := range open {
			e, err := o.next()
			require.NoError(t, err)
			if i > 0 && d.latest.number > 0 {
				require.Same(t, &sent[0], &e[0])
			}
			sent = e
		}
		return sent
	}
	const seconds = 20
	var drawn [3]int // parts, charts, evidence
	for second := range seconds {
		publish(second)
		for id := range sentParts(t, allSent()) {
			drawn[0]++
			switch id[len(id)-2:] {
			case "-c":
				drawn[1]++
			case "-f":
				drawn[2]++
			}
		}
	}
	require.EqualValues(t, seconds-1, d.latest.number)
	require.Positive(t, drawn[0])
	require.LessOrEqual(t, drawn[1], maxOpen*seconds/5, "charts have a new column every five seconds")
	require.LessOrEqual(t, drawn[2], maxOpen*(1+seconds/3))

	late := *open[0]
	for second := range 2 {
		publish(seconds + second)
		allSent()
	}
	require.Contains(t, sentNext(t, &late).Parts, "clock")
	require.Same(t, open[0].shown, late.shown)

	parts := d.latest.parts
	publish(seconds + 1)
	require.NotSame(t, open[0].shown, d.latest.view)
	require.Empty(t, sentParts(t, allSent()), "nothing has changed")
	require.Equal(t, parts, d.latest.parts)
}

func sentParts(t *testing.T, e event) map[string]string {
	t.Helper()
	var u update
	require.NoError(t, json.Unmarshal(bytes.TrimPrefix(e, []byte("event: update\ndata: ")), &u))
	return u.Parts
}

// With 100 listeners an open page is sent little: the worst change, the rest
// is a line each.
func TestUpdatesAreSmall(t *testing.T) {
	var s published
	busy := func(queue int) *model.Snapshot {
		var all []model.Listener
		for port := range uint16(100) {
			l := listener(8000+port, model.StatusOK)
			if port < 10 {
				l.Verdict.Status = model.StatusLosing
			}
			l.AcceptQueue.Length = queue
			all = append(all, l)
		}
		return snapshotOf(all...)
	}
	page, err := New(Options{Snapshot: s.Load, History: incident.NewHistory(), Now: func() time.Time { return now }, Interval: time.Second})
	require.NoError(t, err)
	all := &openPage{server: page, drawing: page.shared(choice{}), turn: func() (func(), bool) { return always(nil) }}
	var most, total int
	for second := range 60 {
		snap := busy(second % 3)
		snap.Time = now.Add(time.Duration(second) * time.Second)
		s.Store(snap)
		page.options.History.Observe(snap)
		body, err := all.next()
		require.NoError(t, err)
		if second > 0 {
			require.NotContains(t, string(body), `"main":`)
			most, total = max(most, len(body)), total+len(body)
		}
	}
	t.Logf("%d bytes a second, at most %d", total/59, most)
	require.Less(t, total/59, 20_000)
}

func TestReportStandsAlone(t *testing.T) {
	var b bytes.Buffer
	var all []model.Listener
	for port := range uint16(10) {
		all = append(all, listener(8080+port, model.StatusOK))
	}
	require.NoError(t, Report(&b, snapshotOf(all...), "1.2.3", "tcpdiag snapshot --port 8080"))
	require.Equal(t, 10, strings.Count(b.String(), "<article"), "every listener whole")
	for _, want := range []string{"As of 2026-01-02 03:04:05 UTC", "web-1", "tcpdiag 1.2.3", "<code>tcpdiag snapshot --port 8080</code>", "Settings in force"} {
		require.Contains(t, b.String(), want)
	}
	require.NotContains(t, b.String(), "<script")
	require.NotContains(t, b.String(), "<button", "nothing to press on paper")
	require.NotContains(t, b.String(), "<link")
	require.Contains(t, b.String(), "@media print")
}

// Wherever in a page a stranger's text stands, nothing of it is invisible or turns the order of
// what stands beside it.
func TestNothingInvisible(t *testing.T) {
	require.Equal(t, "<b>a\\u202eb</b>\n\t\\x1b[2J\\u2028\\xff é …", Visible("<b>a\u202eb</b>\n\t\x1b[2J\u2028\xff é …"))
	require.Equal(t, "as it was\n", Visible("as it was\n"))
}
