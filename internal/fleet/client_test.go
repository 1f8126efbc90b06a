package fleet_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/fleet"
)

var night = time.Date(2026, 5, 4, 3, 12, 0, 0, time.UTC)

// sample is a series of an answer.
type sample struct {
	labels map[string]string
	value  float64
}

// server answers questions by what they contain; the first that matches answers.
type server struct {
	answers [][2]any // part of a question, []sample
	warning string

	mu    sync.Mutex
	asked []string
	heads http.Header
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	expr := r.PostFormValue("query")
	s.mu.Lock()
	s.asked, s.heads = append(s.asked, expr+" @"+r.PostFormValue("time")), r.Header
	s.mu.Unlock()
	result := []any{}
	for _, a := range s.answers {
		if strings.Contains(expr, a[0].(string)) {
			for _, one := range a[1].([]sample) {
				result = append(result, map[string]any{"metric": one.labels, "value": []any{1.0, fmt.Sprint(one.value)}})
			}
			break
		}
	}
	document := map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}}
	if s.warning != "" {
		document["warnings"] = []string{s.warning}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

func ask(t *testing.T, h http.Handler, file string, of fleet.Selection, limit int) (*api.Fleet, error) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	base, err := fleet.ParseURL(server.URL + "/prometheus")
	require.NoError(t, err)
	client, err := fleet.New(base, file, night)
	require.NoError(t, err)
	return client.Table(t.Context(), of, limit)
}

// losing is a listener as the rules know it.
func losing(more map[string]string) map[string]string {
	labels := map[string]string{
		"job": "tcpdiag", "instance": "10.0.0.1:10889", "node": "worker-1", "netns": "2", "listener": "[::]:8080", "port": "8080",
		"namespace": "shop", "pod": "orders-1", "container": "app", "process": "java:8080", "cause": "max_connections",
	}
	for k, v := range more {
		labels[k] = v
	}
	return labels
}

func identity(labels map[string]string) map[string]string {
	out := make(map[string]string)
	for _, name := range []string{"cluster", "job", "instance", "netns", "listener"} {
		if labels[name] != "" {
			out[name] = labels[name]
		}
	}
	return out
}

func one(labels map[string]string, value float64) []sample { return []sample{{labels, value}} }

func sick() *server {
	l := losing(nil)
	well := losing(map[string]string{"pod": "cart-1", "netns": "3", "cause": "none"})
	down := map[string]string{"job": "tcpdiag", "instance": "10.0.0.2:10889", "netns": "9", "port": "9090", "cause": "no_listener"}
	return &server{answers: [][2]any{
		{"sum by (status) (instance_status:tcpdiag_listeners:count", []sample{{map[string]string{"status": "ok"}, 14998}, {map[string]string{"status": "losing"}, 1}, {map[string]string{"status": "down"}, 1}}},
		{"count_values", []sample{{map[string]string{"status": "0"}, 14998}, {map[string]string{"status": "3"}, 1}, {map[string]string{"status": "4"}, 1}}},
		{"count(tcpdiag_build_info", one(nil, 250)},
		{"count(up", one(nil, 2)},
		{"1e6 *", []sample{{l, 3000312}, {down, 4000000}}},
		{"== 0) and on", one(well, 1)},
		{"listener:tcpdiag_clients_turned_away", one(identity(l), 312)},
		{"listener:tcpdiag_dropped_packets", one(identity(l), 1200)},
		{"listener:tcpdiag_limit_used_ratio", []sample{{identity(l), 1}, {identity(well), 0.5}}},
		{"tcpdiag_listener_clients_inside", one(identity(l), 41)},
		{`limit="max_connections"`, one(identity(l), 20)},
		{`tcpdiag_connector_limit{instance=~"10\\.0\\.0\\.1:10889|10\\.0\\.0\\.2:10889",limit="max_threads"}`, one(identity(l), 4)},
		{`tcpdiag_listener_limit_used_ratio{`, one(identity(l), 1)},
		{"accept_queue_length", one(identity(l), 21)},
		{"accept_queue_capacity", one(identity(l), 21)},
		{"tcpdiag_listener_info", one(map[string]string{"job": "tcpdiag", "instance": "10.0.0.2:10889", "netns": "9", "port": "9090", "process": "java:9090", "namespace": "shop", "pod": "admin-1"}, 1)},
		{"tcpdiag_port_refused", one(map[string]string{"job": "tcpdiag", "instance": "10.0.0.2:10889", "netns": "9", "port": "9090"}, 42)},
	}}
}

func TestTable(t *testing.T) {
	s := sick()
	s.warning = "partial response: store 10.0.0.9 is not reachable"
	got, err := ask(t, s, "", fleet.Selection{}, 20)
	require.NoError(t, err)
	require.Equal(t, &api.Fleet{
		Schema: api.FleetSchema, Time: night, FromRules: true, Status: "down", Counts: map[string]int{"ok": 14998, "losing": 1, "down": 1},
		Agents: 250, AgentsNotScraped: 2, Omitted: 14997, Warnings: []string{s.warning},
		Listeners: []api.FleetListener{
			{Job: "tcpdiag", Instance: "10.0.0.2:10889", NetNS: "9", Port: 9090, Namespace: "shop", Pod: "admin-1", Process: "java", Status: "down", Cause: "no_listener", ClientsTurnedAway: new(uint64(42))},
			{
				Job: "tcpdiag", Instance: "10.0.0.1:10889", Node: "worker-1", NetNS: "2", Address: "[::]:8080", Port: 8080,
				Namespace: "shop", Pod: "orders-1", Container: "app", Process: "java", Status: "losing", Cause: "max_connections",
				ClientsTurnedAway: new(uint64(312)), DroppedPackets: new(uint64(1200)), FullestRatio: new(1.0),
				AcceptQueue: &api.FleetStage{Used: new(21), Max: new(21)}, Connections: &api.FleetStage{Used: new(20), Max: new(20)}, Threads: &api.FleetStage{Used: new(4), Max: new(4)},
			},
			{
				Job: "tcpdiag", Instance: "10.0.0.1:10889", Node: "worker-1", NetNS: "3", Address: "[::]:8080", Port: 8080,
				Namespace: "shop", Pod: "cart-1", Container: "app", Process: "java", Status: "ok", FullestRatio: new(0.5),
			},
		},
	}, got)
	for _, q := range s.asked {
		require.True(t, strings.HasSuffix(q, fmt.Sprintf("@%d", night.Unix())), q)
	}
}

// What is selected is a string of PromQL, whatever it has in it.
func TestSelectionIsQuoted(t *testing.T) {
	s := sick()
	_, err := ask(t, s, "", fleet.Selection{Namespace: `a"} or up{x="`, Cluster: "c\\1"}, 20)
	require.NoError(t, err)
	for _, q := range s.asked {
		require.NotContains(t, q, `a"}`, q)
		if strings.Contains(q, "listener:tcpdiag_status:max") {
			require.Contains(t, q, `{namespace="a\"} or up{x=\"",cluster="c\\1"}`)
		}
	}
}

// Labels are strangers': no control character reaches a screen, and none is endless.
func TestLabelsAreEscaped(t *testing.T) {
	hostile := losing(map[string]string{"pod": "\x1b[2Jorders\u202e", "namespace": strings.Repeat("n", 10_000), "cause": "\x07", "node": "a\nb"})
	s := &server{warning: "\x1b]0;title\x07" + strings.Repeat("w", 10_000), answers: [][2]any{
		{"count_values", []sample{{map[string]string{"status": "3"}, 1}, {map[string]string{"status": "99"}, 1}, {map[string]string{"status": "x"}, 1}}},
		{"1e6 *", []sample{{hostile, 3000000}, {hostile, 9000000}, {losing(nil), -1}}},
	}}
	got, err := ask(t, s, "", fleet.Selection{}, 20)
	require.NoError(t, err)
	require.Len(t, got.Listeners, 1)
	text, err := json.Marshal(got)
	require.NoError(t, err)
	for _, bad := range []string{"\\u001b", "\u202e", "\\u0007", "\\n"} {
		require.NotContains(t, string(text), bad)
	}
	require.Less(t, len(text), 2000)
}

// Without the rules the agents' own series answer, and the table says so.
func TestRulesMissing(t *testing.T) {
	raw := losing(nil)
	s := &server{answers: [][2]any{
		{`count_values("status", listener:tcpdiag_status:max`, []sample{}},
		{"count_values", one(map[string]string{"status": "3"}, 1)},
		{"listener:tcpdiag_trouble:max", []sample{}},
		{"1e6 *", one(raw, 3000001)},
	}}
	got, err := ask(t, s, "", fleet.Selection{}, 20)
	require.NoError(t, err)
	require.False(t, got.FromRules)
	require.Len(t, got.Listeners, 1)
}

// What is missing is said, where there is nothing to show.
func TestNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		s    *server
		of   fleet.Selection
		want string
	}{
		"no agent":      {&server{}, fleet.Selection{}, "no agent was scraped"},
		"no cluster":    {&server{answers: [][2]any{{"count(tcpdiag_build_info{})", one(nil, 3)}}}, fleet.Selection{Cluster: "east"}, `no agent of cluster "east"`},
		"no namespace":  {&server{answers: [][2]any{{"count(tcpdiag_build_info{})", one(nil, 3)}}}, fleet.Selection{Namespace: "shop"}, `no listener of a pod in namespace "shop"`},
		"no listener":   {&server{answers: [][2]any{{"count(tcpdiag_build_info{})", one(nil, 3)}}}, fleet.Selection{}, "3 agents are scraped, and none watches a listener"},
		"hostile words": {&server{answers: [][2]any{{"count(tcpdiag_build_info{})", one(nil, 3)}}}, fleet.Selection{Namespace: "a\x1b"}, `"a\\x1b"`},
	} {
		_, err := ask(t, tt.s, "", tt.of, 20)
		require.ErrorIs(t, err, fleet.ErrNothing, name)
		require.ErrorContains(t, err, tt.want, name)
	}
}

// An error says what to do, and shows nothing of an answer that is no API's.
func TestServersThatDoNotAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"not found": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret page", http.StatusNotFound) }, "no /api/v1/query below this URL"},
		"no tenant": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no org id", http.StatusUnauthorized) }, "X-Scope-OrgID"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
		}, "give the URL that it leads to"},
		"a page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>secret")) }, "cannot be read"},
		"a query": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"status":"error","errorType":"execution","error":"query timed out\u001b"}`))
		}, `query timed out\x1b`},
		"a matrix": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`))
		}, "answers with a matrix"},
		"without end": {func(w http.ResponseWriter, _ *http.Request) {
			chunk := make([]byte, 1<<20)
			for range 70 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "more than 64 MiB"},
	} {
		_, err := ask(t, tt.h, "", fleet.Selection{}, 20)
		require.ErrorContains(t, err, tt.want, name)
		require.NotContains(t, err.Error(), "secret", name)
		require.NotContains(t, err.Error(), "\x1b", name)
	}
}

func TestURLs(t *testing.T) {
	for address, want := range map[string]string{
		"prometheus:9090":             "give a URL such as",
		"http://":                     "give a URL such as",
		"ftp://prometheus":            "give a URL such as",
		"http://a:secret@prometheus":  "as basic_auth",
		"http://prometheus?token=a":   "without a query",
		"http://prometheus\x7f":       "this is no URL",
		"http://prometheus/#fragment": "without a query",
	} {
		_, err := fleet.ParseURL(address)
		require.ErrorContains(t, err, want, address)
		require.NotContains(t, err.Error(), "secret")
	}
}

// Credentials and the tenant come from a file, which no error shows.
func TestHTTPConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "client.yml")
	require.NoError(t, os.WriteFile(file, []byte("authorization: {credentials: hunter2}\nhttp_headers: {X-Scope-OrgID: {values: [shop]}}\n"), 0o600))
	s := sick()
	_, err := ask(t, s, file, fleet.Selection{}, 20)
	require.NoError(t, err)
	require.Equal(t, "Bearer hunter2", s.heads.Get("Authorization"))
	require.Equal(t, "shop", s.heads.Get("X-Scope-OrgID"))
	require.Equal(t, "tcpdiag", s.heads.Get("User-Agent"))

	require.NoError(t, os.WriteFile(file, []byte("basic_auth: hunter2\n"), 0o600))
	base, err := fleet.ParseURL("http://127.0.0.1:1")
	require.NoError(t, err)
	_, err = fleet.New(base, file, night)
	require.ErrorContains(t, err, "not an HTTP client configuration")
	require.NotContains(t, err.Error(), "hunter2")
}

// An answer that comes packed, which nobody asked for, is not unpacked.
func TestPackedAnswers(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 65 {
		_, err := z.Write(bytes.Repeat([]byte(" "), 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	_, err := ask(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}), "", fleet.Selection{}, 10)
	require.ErrorContains(t, err, "cannot be read as one of Prometheus's API")
}
