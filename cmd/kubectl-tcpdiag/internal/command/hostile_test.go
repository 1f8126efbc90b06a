package command

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	document "github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/foreign"
)

// What a pod answers comes by the API server's proxy as its own answer: a redirect would have the
// user's token added again, for wherever the pod likes.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var reached atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		t.Logf("sent there: %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		c := newCluster(t)
		c.add("orders-1", "n1", "app", "tcpdiag")
		c.addAgent("n1")
		token := ""
		c.instead = func(w http.ResponseWriter, r *http.Request) {
			token = r.Header.Get("Authorization")
			http.Redirect(w, r, elsewhere.URL+"/api/v1/snapshot", code)
		}
		for _, args := range [][]string{{"orders-1", "--via", "sidecar"}, {"orders-1", "--via", "node"}, {"incidents"}} {
			_, stderr, exit := c.run(args...)
			require.Zero(t, reached.Load(), "%d %v: sent on", code, args)
			require.Equal(t, "Bearer t", token)
			require.Equal(t, 1, exit, args)
			require.Contains(t, stderr, "a redirect), which is not followed", args)
		}
	}
}

// An error of a pod's without an end is read to a bound.
func TestEndlessErrors(t *testing.T) {
	c := newCluster(t)
	c.add("orders-1", "n1", "app", "tcpdiag")
	sent := 0
	c.instead = func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		part := bytes.Repeat([]byte("x"), 64<<10)
		for r.Context().Err() == nil && sent < 64<<20 {
			n, err := w.Write(part)
			if sent += n; err != nil {
				return
			}
		}
	}
	began := time.Now()
	_, stderr, code := c.run("orders-1", "--via", "sidecar")
	require.Equal(t, 1, code)
	require.Less(t, len(stderr), 2000)
	require.Less(t, sent, 32<<20, "what the sockets hold is more than is read, and not all of it")
	require.Less(t, time.Since(began), time.Minute)
}

// Whatever text of whatever answer holds it: nothing that a terminal would obey is printed.
func TestHostileTextsAnywhere(t *testing.T) {
	const hostile = "\x1b]0;owned\x07\u202etxt\u009b31m\x7f\r"
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app", "tcpdiag")
	pod.Labels["tcpdiag.github.io/sidecar"] = "true"
	worse := func(s string) string { return s + hostile }
	c.answer("shop/orders-1:10889", snapshotPath, overloaded(t, pod, func(s *document.Snapshot) {
		s.Unavailable = append(s.Unavailable, document.Unavailable{What: "clients by outcome: handshakes", Why: "no", How: "no"})
		s.Notes = append(s.Notes, "note")
		keep := *s
		status := s.Listeners[0].Verdict.Status
		process := *s.Listeners[0].Process
		foreign.Rewrite(s, worse)
		s.Schema, s.Listeners[0].Verdict.Status = keep.Schema, status
		s.Listeners[0].Process.PodUID, s.Listeners[0].Process.Container = process.PodUID, process.Container
	}))
	incidents := document.Incidents{Incidents: []document.IncidentSummary{{ID: "i", Status: "losing", Address: ":1", Title: "t", Began: time.Unix(1, 0)}}}
	foreign.Rewrite(&incidents, worse)
	text, err := json.Marshal(incidents)
	require.NoError(t, err)
	c.answer("shop/orders-1:10889", "/api/v1/incidents", text)
	for _, args := range [][]string{
		{"orders-1"},
		{"orders-1", "-v"},
		{"orders-1", "-o", "json"},
		{"-A"},
		{"incidents"},
		{"incidents", "-o", "json"},
		{"watch", "orders-1", "--for", "10ms"},
		{"watch", "orders-1", "--for", "10ms", "-o", "json"},
		{"report", "orders-1", "-o", "-"},
	} {
		stdout, stderr, code := c.run(args...)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, `owned`, args)
		bad := strings.IndexFunc(stdout+stderr, func(r rune) bool { return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) })
		require.Negative(t, bad, "%v: %q", args, (stdout + stderr)[max(0, bad-30):min(len(stdout+stderr), max(bad, 0)+30)])
	}
}
