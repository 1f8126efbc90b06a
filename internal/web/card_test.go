package web

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// overloaded lost clients, and its threads wait for a database.
func overloaded() model.Listener {
	l := listener(8080, model.StatusLosing)
	c := &model.Clients{Observed: time.Minute, Waiting: 3, Losers: []model.ClientSource{{Addr: netip.MustParseAddr("192.0.2.77"), Clients: 9}}}
	c.Outcomes[model.ClientConnected], c.Outcomes[model.ClientDelayed], c.Outcomes[model.ClientGaveUp] = 8293, 312, 1707
	c.Answers.Known = true
	c.Responses = model.FirstResponses{Count: 40, Bounds: outcome.ResponseBounds()}
	for i := range c.Responses.Buckets {
		c.Responses.Buckets[i] = uint64(4 * i)
	}
	l.Losses = &model.Losses{Clients: c}
	l.Process = &model.Process{PID: 42, Comm: "java", Downstream: &model.Downstream{Peers: []model.Peer{
		{
			Address: netip.MustParseAddrPort("10.0.3.7:5432"), Name: "orders-<db>", Connections: 10, InFlight: 10, Oldest: 4900 * time.Millisecond,
			Pool: &model.Pool{Size: model.Setting[int]{Value: 10}},
		},
		{Address: netip.MustParseAddrPort("10.0.3.8:6379"), Connections: 2, Connecting: 2, OldestConnect: 3 * time.Second, Background: new(1)},
		{Address: netip.MustParseAddrPort("10.0.3.9:443"), Connections: 7},
	}}}
	return l
}

// A reader of the page or of its report sees how many clients, and what their
// requests wait for.
func TestClientsAndPeersAreShown(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Report(&b, snapshotOf(overloaded()), "1.2.3", ""))
	page := b.String()
	for _, want := range []string{
		"<h3>Attempts to connect in 60 s: 10,315</h3>", "8,293 connected", "312 delayed", "1,707 gave up", "3 still trying",
		"First byte of an answer: half within 0.5 s",
		"<h3>Requests in flight, by peer</h3>", "10.0.3.7:5432 (orders-&lt;db&gt;)", "10 of 10 connections", "oldest 4.9 s", "pool of 10",
		"10.0.3.8:6379", "0 of 2 connections", "oldest 3 s", "2 not connected yet · 1 also at rest",
	} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "stalled", "what did not happen")
	require.NotContains(t, page, "checks")
	require.NotContains(t, page, "10.0.3.9", "nothing is asked of it")
	require.NotContains(t, page, "192.0.2.77", "a client's address is for the screen")
}

// Checks are among those who connect.
func TestChecksAreNamed(t *testing.T) {
	l := overloaded()
	l.Losses.Clients.Answers = model.ClientAnswers{Known: true, Checks: 1028}
	var b bytes.Buffer
	require.NoError(t, Report(&b, snapshotOf(l), "1.2.3", ""))
	require.Contains(t, b.String(), "<h3>Attempts to connect in 60 s: 10,315, 1,028 of them checks</h3>")
}

// An estimate says how far it may be from the truth.
func TestEstimatedClients(t *testing.T) {
	l := listener(8080, model.StatusOK)
	l.AcceptQueue = &model.AcceptQueue{Limit: 100}
	l.Connections = &model.Connections{Accepted: 10_007}
	l.Connections.Phases[model.Idle] = 10_007
	shown := func() string {
		var b bytes.Buffer
		require.NoError(t, Report(&b, snapshotOf(l), "1.2.3", ""))
		return b.String()
	}
	require.Contains(t, shown(), "Clients inside: 10,007 of 161<")
	l.Connections.Subset, l.Connections.Error = 4096, 55
	require.Contains(t, shown(), "Clients inside: 10,007 of 161 (each part ±55)<")
}

// Where handshakes are not followed and connections not read, nothing is said.
func TestUnknownClientsAndPeersAreNotShown(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Report(&b, snapshotOf(listener(8080, model.StatusLosing)), "1.2.3", ""))
	require.NotContains(t, b.String(), "Attempts to connect")
	require.NotContains(t, b.String(), "Requests in flight")
}

// The connections of a whole user, and more than were counted, are said to be so.
func TestPeersThatAreNotWhole(t *testing.T) {
	l := overloaded()
	l.Process.Downstream.ByUser, l.Process.Downstream.Partial = true, true
	heading, _ := peers(&l)
	require.Equal(t, "Requests in flight, by peer (of all processes of its user), at least", heading)
	p := l.Process.Downstream.Peers[0]
	for range 2 * maxPeers {
		l.Process.Downstream.Peers = append(l.Process.Downstream.Peers, p)
	}
	_, shown := peers(&l)
	require.Len(t, shown, maxPeers)
}

// What a stranger adds to an address makes no page of its own.
func TestChoicesThatShowTheSame(t *testing.T) {
	snap := &model.Snapshot{Listeners: []model.Listener{{Port: 8080}}}
	s := new(Server)
	question := func(query string) string {
		return s.Question(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+query, nil), snap)
	}
	require.NotEmpty(t, question(""))
	for _, same := range []string{"x=1", "process=a", "pod=a/b", "netns=7", "minutes=none"} {
		require.Equal(t, question(""), question(same), same)
	}
	require.NotEqual(t, question(""), question("port=8080"))
	require.Equal(t, question("port=8080"), question("port=8080&netns=7&listener=x"))
	require.Empty(t, question("port=1"))
	require.Empty(t, question("listener=x"))
}

// What a browser has already is not sent again.
func TestAssetsAreAskedForOnCondition(t *testing.T) {
	ask := func(etag string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/assets/page.css", nil)
		r.Header.Set("If-None-Match", etag)
		new(Server).Asset(w, r)
		return w
	}
	first := ask("")
	require.Equal(t, http.StatusOK, first.Code)
	require.NotZero(t, first.Body.Len())
	again := ask(first.Header().Get("ETag"))
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Zero(t, again.Body.Len())
}
