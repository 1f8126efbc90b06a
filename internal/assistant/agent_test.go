package assistant

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
)

// agentAt is the source of a test's server.
func agentAt(t *testing.T, serve http.HandlerFunc) *Agent {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	a, err := agentOf(server.URL, "")
	require.NoError(t, err)
	return a
}

func agentOf(address, file string) (*Agent, error) {
	base, err := AgentURL(address)
	if err != nil {
		return nil, err
	}
	return NewAgent(base, file)
}

func sends(v any) http.HandlerFunc {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }
}

// What an agent has is what is answered, from its own pages.
func TestAgent(t *testing.T) {
	want := full("name")
	want.incident.Schema, want.incidents.Schema = api.IncidentSchema, api.IncidentsSchema
	snap := filled[api.Snapshot]("name")
	snap.Schema = api.SnapshotSchema
	mux := http.NewServeMux()
	mux.HandleFunc("GET /below/api/v1/snapshot", sends(snap))
	mux.HandleFunc("GET /below/api/v1/incidents", sends(want.incidents))
	mux.HandleFunc("GET /below/api/v1/incidents/"+someID, sends(want.incident))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	a, err := agentOf(server.URL+"/below/", "")
	require.NoError(t, err)
	require.False(t, a.TakesInterval())
	got, err := a.Snapshot(t.Context(), Query{})
	require.NoError(t, err)
	require.Equal(t, snap, got)
	got, err = a.Snapshot(t.Context(), Query{Port: 8})
	require.NoError(t, err)
	require.Empty(t, got.Listeners)
	list, err := a.Incidents(t.Context())
	require.NoError(t, err)
	require.Equal(t, want.incidents, list)
	one, err := a.Incident(t.Context(), someID)
	require.NoError(t, err)
	require.Equal(t, want.incident, one)
	_, err = a.Incident(t.Context(), "000008-20260102T031205Z-8080")
	require.ErrorIs(t, err, ErrUnknown)

	session := connect(t, a, nil)
	require.Contains(t, document(t, called(t, session, "report", map[string]any{"id": someID})), `"name"`)
	r := called(t, session, "snapshot", map[string]any{"interval_seconds": 1})
	require.True(t, r.IsError, "an agent has its own interval")
}

// TLS and passwords are those of Prometheus's client, whose other half the agent has.
func TestAgentCredentials(t *testing.T) {
	snap := filled[api.Snapshot]("name")
	snap.Schema = api.SnapshotSchema
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ops" || password != "swordfish" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		sends(snap)(w, r)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write("password", "swordfish")
	ask := func(settings string) error {
		a, err := agentOf(server.URL, write("client.yml", settings))
		if err != nil {
			return err
		}
		_, err = a.Snapshot(t.Context(), Query{})
		return err
	}
	named := "the agent at " + server.URL + " "
	require.NoError(t, ask("basic_auth: {username: ops, password_file: password}\ntls_config: {ca_file: ca.pem}\n"))
	require.EqualError(t, ask("basic_auth: {username: ops, password: other}\ntls_config: {ca_file: ca.pem}\n"), named+"wants other credentials (401): give them in --http.config.file")
	require.EqualError(t, ask("basic_auth: {username: ops, password: swordfish}\n"), named+"has a certificate that is not trusted: give its authority as tls_config.ca_file in --http.config.file")
	for _, elsewhere := range []string{"proxy_url: http://127.0.0.1:1", "proxy_from_environment: true", "oauth2: {client_id: a, client_secret: b, token_url: 'http://127.0.0.1:1'}"} {
		require.ErrorContains(t, ask(elsewhere), "oauth2 and proxies are not used: no address but --agent is reached")
	}
	err := ask("basic_auth: {username: ops, pasword: swordfish}\n")
	require.ErrorContains(t, err, "not an HTTP client configuration")
	require.NotContains(t, err.Error(), "swordfish")
	_, err = agentOf(server.URL, "/does/not/exist")
	require.ErrorContains(t, err, "--http.config.file: open /does/not/exist")
}

func TestAgentURL(t *testing.T) {
	for address, want := range map[string]string{
		"10889":                 "give a URL such as http://127.0.0.1:10889",
		"ftp://a":               "give a URL such as http://127.0.0.1:10889",
		"http://":               "give a URL such as http://127.0.0.1:10889",
		"http://a b/%%":         "--agent: this is no URL",
		"http://ops:secret@a":   "give user and password in --http.config.file",
		"http://a/?x=1":         "without a query",
		"file:///etc/passwd":    "give a URL such as",
		"http://a:10889/#there": "without a query or fragment",
	} {
		_, err := AgentURL(address)
		require.ErrorContains(t, err, want, address)
		require.NotContains(t, err.Error(), "secret")
	}
}

// An agent that is none, or hostile, costs a bounded time and memory, is never followed
// to another address, and no word of it is repeated.
func TestHostileAgent(t *testing.T) {
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(other.Close)
	packed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(bytes.Repeat([]byte(" "), 9<<20))
		_ = z.Close()
	}
	tests := map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, "answers with a redirect (302), which is not followed: give its own address"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for range 1 << 10 {
				if _, err := w.Write(bytes.Repeat([]byte("["), 1<<20)); err != nil {
					return
				}
			}
		}, "sends more than 8 MiB"},
		"packed": {packed, "sends no JSON document of tcpdiag"},
		"many": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"schema":%q,"listeners":[%s{}]}`, api.SnapshotSchema, strings.Repeat("{},", 2_000_000))
		}, "sends more than 100000 values"},
		"deep":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("["), 50_000)) }, "sends no JSON document of tcpdiag"},
		"a page":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>" + hostile)) }, "sends no JSON document of tcpdiag"},
		"other JSON": {sends(map[string]string{"schema": hostile}), "sends no snapshot that this program reads (tcpdiag.snapshot/v1)"},
		"not found":  {http.NotFound, "has no such page (404): give the address of tcpdiag agent"},
		"not ready":  {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, hostile, http.StatusServiceUnavailable) }, "is not ready (503): its first scan is not done"},
		"teapot":     {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, hostile, http.StatusTeapot) }, "answers with status 418"},
		"torn": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{" + hostile))
				_ = c.Close()
			}
		}, "does not answer as an agent does (name, protocol or TLS)"},
		"headers": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 200 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("h", 100_000))
			}
		}, "does not answer as an agent does (name, protocol or TLS)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := agentAt(t, tt.serve)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := a.Snapshot(t.Context(), Query{})
			runtime.ReadMemStats(&after)
			require.EqualError(t, err, "the agent at "+a.base.String()+" "+tt.want)
			require.Less(t, after.HeapSys, before.HeapSys+150<<20)
		})
	}
	require.False(t, reached.Load(), "a redirect was followed")

	slow := agentAt(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	slow.timeout = 300 * time.Millisecond
	began := time.Now()
	_, err := slow.Snapshot(t.Context(), Query{})
	require.ErrorContains(t, err, "did not send its whole answer in 300ms")
	slow.timeout = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = slow.Snapshot(ctx, Query{})
	require.Error(t, err)
	require.Less(t, time.Since(began), 30*time.Second)

	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	a, err := agentOf(closed.URL, "")
	require.NoError(t, err)
	_, err = a.Snapshot(t.Context(), Query{})
	require.EqualError(t, err, "the agent at "+closed.URL+" cannot be reached: connection refused")
}

// The largest document that is decoded takes a bounded memory.
func TestDecodedSize(t *testing.T) {
	body := fmt.Sprintf(`{"schema":%q,"listeners":[%snull]}`, api.SnapshotSchema, strings.Repeat("null,", maxValues-10))
	a := agentAt(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	snap, err := a.Snapshot(t.Context(), Query{})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	t.Logf("%d listeners of %d bytes: heap %d MiB more, %d MiB allocated", len(snap.Listeners), len(body), (after.HeapSys-before.HeapSys)>>20, (after.TotalAlloc-before.TotalAlloc)>>20)
	require.Less(t, after.HeapSys, before.HeapSys+200<<20)
}
