package assistant

import (
	"context"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
)

// questions are calls of every tool.
func questions() map[string][]map[string]any {
	return map[string][]map[string]any{
		"listeners": {{}, {"limit": 1}},
		"snapshot":  {{}, {"port": 8080}, {"evidence": true, "interval_seconds": 0, "limit": 5}},
		"explain":   {{"cause": "max_threads"}},
		"plan":      {{"requests": 300, "service_time_seconds": 5}, {"rate": 50, "duration_seconds": 10, "service_time_seconds": 0.4, "threads": 4, "from_port": 8080, "evidence": true}},
		"incidents": {{}, {"port": 7, "since": "2026-01-01T00:00:00Z", "limit": 3}},
		"report":    {{"id": someID}, {"id": someID, "evidence": true}},
	}
}

// Each tool reads only, and takes and gives what its schemas say, also where every
// field of every document is there.
func TestEveryTool(t *testing.T) {
	session := connect(t, full("name"), nil)
	listed, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
		require.True(t, tool.Annotations.ReadOnlyHint, tool.Name)
		require.False(t, *tool.Annotations.DestructiveHint, tool.Name)
		input, output := compiled(t, tool.InputSchema), compiled(t, tool.OutputSchema)
		for _, arguments := range questions()[tool.Name] {
			t.Run(tool.Name, func(t *testing.T) {
				require.NoError(t, input.Validate(plainJSON(t, arguments)))
				r := called(t, session, tool.Name, arguments)
				text := document(t, r)
				require.NoError(t, output.Validate(plainJSON(t, r.StructuredContent)))
				structured, err := json.Marshal(r.StructuredContent)
				require.NoError(t, err)
				require.JSONEq(t, string(structured), text)
				answered, isMap := r.StructuredContent.(map[string]any)
				require.True(t, isMap)
				require.Equal(t, arguments["evidence"] == true, answered["evidence"] != nil)
			})
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(questions())), names)
}

// plainJSON is a value as a validator reads it.
func plainJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// An argument that is wrong gets one line with its name and what to give, and never
// what was given.
func TestWrongArguments(t *testing.T) {
	session := connect(t, full("name"), nil)
	long := strings.Repeat("x", 100_000)
	tests := []struct {
		tool, want string
		arguments  any
	}{
		{"snapshot", "port: give a whole number from 1 to 65535", map[string]any{"port": 0}},
		{"snapshot", "port: give a whole number from 1 to 65535", map[string]any{"port": -1}},
		{"snapshot", "port: give a whole number from 1 to 65535", map[string]any{"port": 65536}},
		{"snapshot", "port: give a whole number from 1 to 65535", map[string]any{"port": long}},
		{"snapshot", "port: give a whole number from 1 to 65535", map[string]any{"port": nil}},
		{"snapshot", "interval_seconds: give a number from 0 to 60", map[string]any{"interval_seconds": 3600}},
		{"snapshot", "limit: give a whole number from 1 to 100", map[string]any{"limit": -5}},
		{"snapshot", "evidence: give true or false", map[string]any{"evidence": "please"}},
		{"snapshot", "arguments: one of them is none of this tool, or not of its type; its input schema has those that there are", map[string]any{long: 1}},
		{"snapshot", "arguments: one of them is none of this tool, or not of its type; its input schema has those that there are", []int{1}},
		{"snapshot", "port 9090 is none of those that are watched: the tool listeners lists them", map[string]any{"port": 9090}},
		{"listeners", "limit: give a whole number from 1 to 100", map[string]any{"limit": 1.5}},
		{"report", "id is missing: give a string", map[string]any{}},
		{"report", errNoID.Error(), map[string]any{"id": "../../../etc/passwd"}},
		{"report", errNoID.Error(), map[string]any{"id": someID + "/../../x"}},
		{"report", errNoID.Error(), map[string]any{"id": long}},
		{"report", ErrUnknown.Error(), map[string]any{"id": "000008-20260102T031205Z-8080"}},
		{"incidents", "port: give a whole number from 1 to 65535", map[string]any{"port": 0}},
		{"incidents", "arguments: one of them is none of this tool, or not of its type; its input schema has those that there are", map[string]any{"since": "yesterday"}},
		{"plan", "service_time_seconds is missing: give a number from 0 to 86400", map[string]any{"requests": 5}},
		{"plan", "requests: give a whole number from 1 to 100000", map[string]any{"requests": 1e9, "service_time_seconds": 1}},
		{"plan", "requests: give a whole number from 1 to 100000", map[string]any{"requests": -1, "service_time_seconds": 1}},
		{"plan", "service_time_seconds: must be more than 0: the time a thread works on one request, for example 250ms", map[string]any{"requests": 1, "service_time_seconds": 0}},
		{"plan", "requests: must be 1 or more (a burst), or give rate and duration_seconds", map[string]any{"service_time_seconds": 1}},
		{"plan", "rate and duration_seconds: at most 100000 requests; scale the load and the limits down by the same factor", map[string]any{"rate": 1e5, "duration_seconds": 86400, "service_time_seconds": 1}},
		{"plan", "threads: must be 1 or more, or -1 for no limit (virtual threads)", map[string]any{"requests": 1, "service_time_seconds": 1, "threads": 0}},
		{"plan", "from_port 9090: nothing that is watched listens there", map[string]any{"requests": 1, "service_time_seconds": 1, "from_port": 9090}},
		{"plan", "syn_retries: give one of linear, exponential", map[string]any{"requests": 1, "service_time_seconds": 1, "syn_retries": long}},
	}
	for _, tt := range tests {
		t.Run(tt.tool, func(t *testing.T) {
			r := called(t, session, tt.tool, tt.arguments)
			require.True(t, r.IsError)
			require.Nil(t, r.StructuredContent)
			require.Len(t, r.Content, 1)
			require.Equal(t, tt.want, textOf(r.Content[0]))
		})
	}
	text := textOf(called(t, session, "explain", map[string]any{"cause": long}).Content[0])
	require.True(t, strings.HasPrefix(text, "cause: give one of "), text)
	require.NotContains(t, text, long)
}

// What there is not, the protocol has an error for.
func TestProtocolErrors(t *testing.T) {
	session := connect(t, full("name"), nil)
	code := func(err error) int64 {
		t.Helper()
		var wire *jsonrpc.Error
		require.ErrorAs(t, err, &wire)
		return wire.Code
	}
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "thread_dump"})
	require.Equal(t, int64(jsonrpc.CodeInvalidParams), code(err))
	_, err = session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "nothing"})
	require.Equal(t, int64(jsonrpc.CodeInvalidParams), code(err))
	_, err = session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "why-is-this-service-slow", Arguments: map[string]string{"port": "0; ignore this"}})
	require.Equal(t, int64(jsonrpc.CodeInvalidParams), code(err))
	for _, uri := range []string{"tcpdiag://runbook/none", "tcpdiag://incident/000008-20260102T031205Z-8080", "tcpdiag://incident/..%2F..%2Fetc%2Fpasswd", "file:///etc/passwd"} {
		_, err = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		require.Equal(t, int64(jsonrpc.CodeInvalidParams), code(err), uri)
	}
}

func TestResourcesAndPrompt(t *testing.T) {
	session := connect(t, full("name"), nil)
	listed, err := session.ListResources(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, listed.Resources, len(diagnosis.Runbooks()))
	for _, r := range listed.Resources {
		read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: r.URI})
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(read.Contents[0].Text, "# "+r.Name+"\n"), r.URI)
		require.Len(t, read.Contents[0].Text, int(r.Size))
	}
	read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: incidentURI + someID})
	require.NoError(t, err)
	var got api.Incident
	require.NoError(t, json.Unmarshal([]byte(read.Contents[0].Text), &got))
	require.Equal(t, *full("name").incident, got)

	prompts, err := session.ListPrompts(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, prompts.Prompts, 1)
	for _, port := range []string{"", "8080"} {
		prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompts.Prompts[0].Name, Arguments: map[string]string{"port": port}})
		require.NoError(t, err)
		text := textOf(prompt.Messages[0].Content)
		require.Contains(t, text, port)
		require.NotContains(t, text, "%!")
	}
}

// The worst comes first, and what is not shown is counted.
func TestBoundedAnswers(t *testing.T) {
	snap := &api.Snapshot{Schema: api.SnapshotSchema}
	for i := range 500 {
		snap.Listeners = append(snap.Listeners, api.Listener{Port: uint16(1000 + i), Verdict: api.Verdict{Status: "ok", Summary: strings.Repeat("s", 100)}})
	}
	snap.Listeners[400].Verdict.Status = "losing"
	snap.Listeners[450].Verdict.Status = "down"
	snap.Listeners[0].Verdict.Status = "of tomorrow"
	session := connect(t, &scripted{snapshot: func(context.Context, Query) (*api.Snapshot, error) { return copied(snap), nil }}, nil)
	var got struct{ Answer Lines }
	require.NoError(t, json.Unmarshal([]byte(document(t, called(t, session, "listeners", nil))), &got))
	require.Len(t, got.Answer.Listeners, 20)
	require.Equal(t, 480, got.Answer.Omitted)
	require.Equal(t, []string{"down", "losing", "ok"}, []string{got.Answer.Listeners[0].Status, got.Answer.Listeners[1].Status, got.Answer.Listeners[2].Status})

	for i := range snap.Listeners {
		snap.Listeners[i].Verdict.Summary = strings.Repeat("s", 3000)
	}
	r := called(t, session, "snapshot", map[string]any{"limit": 100})
	require.LessOrEqual(t, len(document(t, r)), maxAnswer)
	snap.Listeners = snap.Listeners[:100]
	snap.Notes = slices.Repeat([]string{strings.Repeat("n", 3000)}, 200)
	for i := range snap.Listeners {
		snap.Listeners[i].Verdict.Findings = slices.Repeat([]api.Finding{{Evidence: strings.Repeat("e", 3000), Advice: strings.Repeat("a", 3000)}}, 3)
	}
	r = called(t, session, "snapshot", map[string]any{"limit": 100})
	require.True(t, r.IsError)
	require.Equal(t, "the answer is larger than 256 KiB: ask for one port, or without evidence", textOf(r.Content[0]))
}

// What is not given is from the listener, what is given beats it.
func TestPlanFromListener(t *testing.T) {
	snap := &api.Snapshot{Listeners: []api.Listener{{
		Port: 8080, NetNS: 1, AcceptQueue: &api.AcceptQueue{Limit: 5},
		Connector: &api.Connector{MaxConnections: &api.Setting[int]{Value: 20, Source: "application.yml"}},
	}}, NetNS: []api.NetNS{{ID: 1, Sysctl: map[string]int{"somaxconn": 3, "tcp_syncookies": 0}}}}
	session := connect(t, &scripted{snapshot: func(context.Context, Query) (*api.Snapshot, error) { return copied(snap), nil }}, nil)
	r := called(t, session, "plan", map[string]any{"requests": 60, "service_time_seconds": 2, "threads": 4, "client_timeout_seconds": 0, "from_port": 8080})
	var got struct{ Answer Plan }
	require.NoError(t, json.Unmarshal([]byte(document(t, r)), &got))
	in := got.Answer.Input
	require.Equal(t, []any{4, 20, 5, true, false, 3}, []any{in.Threads, in.MaxConnections, in.AcceptCount, in.InForce, in.Syncookies, in.Somaxconn})
	require.Nil(t, in.ClientTimeoutSeconds)
	require.InDelta(t, 30, *in.ConnectTimeoutSeconds, 0)
	require.Equal(t, []string{"max_connections 20 (application.yml)", "accept_count 5 (in force, the listener's Send-Q)", "threads is not known, 200 is assumed"}, got.Answer.Taken)
	require.Equal(t, 60, got.Answer.Outcomes.Served+got.Answer.Outcomes.ConnectTimeout+got.Answer.Outcomes.ReadTimeout)
}

// A snapshot that takes long says how far it has come. One that is not waited for ends, and the
// next is answered.
func TestProgressAndCancel(t *testing.T) {
	ended := make(chan error, 1)
	source := full("name")
	answered := source.snapshot
	source.snapshot = func(ctx context.Context, query Query) (*api.Snapshot, error) {
		if query.Interval < 10*time.Second {
			return answered(ctx, query)
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	heard := make(chan *mcp.ProgressNotificationParams, 100)
	session := connect(t, source, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard <- r.Params }})
	ctx, cancel := context.WithCancel(t.Context())
	params := &mcp.CallToolParams{Name: "snapshot", Arguments: map[string]any{"interval_seconds": 30}}
	params.SetProgressToken("mine")
	go func() {
		defer cancel()
		for range 2 {
			p := <-heard
			require.Equal(t, "mine", p.ProgressToken)
			require.InDelta(t, 30, p.Total, 0)
			require.Positive(t, p.Progress)
		}
	}()
	_, err := session.CallTool(ctx, params)
	require.ErrorIs(t, err, context.Canceled)
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(10 * time.Second):
		t.Fatal("the snapshot goes on")
	}
	document(t, called(t, session, "snapshot", nil))
}

// A thousand calls leave nothing behind.
func TestThousandCalls(t *testing.T) {
	session := connect(t, full("name"), nil)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	ask := func(n int) {
		for i := range n {
			for name, all := range questions() {
				if name != "plan" {
					document(t, called(t, session, name, all[i%len(all)]))
				}
			}
		}
	}
	ask(20)
	before, began, goroutines := heap(), time.Now(), runtime.NumGoroutine()
	ask(200)
	took, after := time.Since(began), heap()
	t.Logf("1000 calls: %v each, heap %d KiB before, %d KiB after", took/1000, before>>10, after>>10)
	require.Less(t, after, before+1<<20)
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+2)
}

// Who is not waited for does not wait for a plan, and no second is made meanwhile.
func TestPlanIsNotWaitedFor(t *testing.T) {
	s := &server{planning: make(chan struct{}, 1)}
	s.planning <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in := usual()
	_, err := s.planOf(ctx, in.Input())
	require.ErrorIs(t, err, context.Canceled)
}
