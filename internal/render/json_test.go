package render_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

// contract is schema tcpdiag.snapshot/v1 as it was published: none of its
// keys may ever change or go away.
const contract = `
{"schema": "tcpdiag.snapshot/v1", "time": "2026-05-04T03:00:12Z", "interval_seconds": 1.0, "host": "shop-7f9c", "kernel": "6.18.0",
 "listeners": [{
   "address": "[::]:8080", "port": 8080, "inode": 13201, "netns": 4026531840,
   "process": {"pid": 42, "comm": "java", "open_files": 8460, "open_files_limit": 20000, "threads": 240},
   "connector": {"server": "tomcat", "framework": "spring-boot", "version": "10.1.41", "protocol": "http-nio",
      "max_connections": {"value": 8192, "source": "env SERVER_TOMCAT_MAX_CONNECTIONS"},
      "accept_count":    {"value": 100,  "source": "default"},
      "max_threads":     {"value": 200,  "source": "BOOT-INF/classes/application.yml"},
      "pool_threads": 200},
   "syn_backlog":  {"length": 97, "limit": 100},
   "accept_queue": {"length": 101, "limit": 100, "capacity": 101, "full": true, "peak": 101, "oldest_wait_seconds": 4.2, "socket_drops": 24966},
   "connections":  {"accepted": 8192, "waiting": 7991, "in_service": 200, "sending": 0, "idle": 0, "client_closed": 1, "unclassified": 0, "reset": 0,
                    "states": {"ESTABLISHED": 8191, "CLOSE_WAIT": 1}},
   "capacity": 8293,
   "limits": [{"name": "accept_queue", "used": 101, "max": 101, "ratio": 1.0}, {"name": "max_connections", "used": 8192, "max": 8192, "ratio": 1.0}],
   "losses": {"dropped_packets": 1700, "by": [{"cause": "max_connections", "packet": "syn", "packets": 1688, "estimated": false}],
              "unattributed": 7, "abandoned_requests": 1, "queue_resets": 0, "worst_case": ["connect_timeout"]},
   "verdict": {"status": "losing", "cause": "max_connections", "chain": ["accept_queue", "max_connections", "max_threads"],
      "summary": "", "findings": [{"code": "", "severity": "", "evidence": "", "advice": ""}]}}],
 "netns": [{"id": 4026531840, "counters": {"ListenOverflows": 99, "ListenDrops": 99}, "delta": {"ListenOverflows": 9, "ListenDrops": 9},
            "sysctl": {"somaxconn": 4096, "tcp_max_syn_backlog": 2048, "tcp_syncookies": 1, "tcp_abort_on_overflow": 0}}],
 "unavailable": [{"what": "environ of pid 42", "why": "permission denied", "how": "run as uid 1000 or grant CAP_SYS_PTRACE"}]}`

func document(t *testing.T, s *model.Snapshot) map[string]any {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, render.JSON(&b, s))
	var doc map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &doc))
	return doc
}

// paths lists every key of a document with its type, lists without their index.
func paths(prefix string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			paths(prefix+"."+k, e, into)
		}
	case []any:
		for _, e := range v {
			paths(prefix+"[]", e, into)
		}
	case string:
		into[prefix] = "string"
	case float64:
		into[prefix] = "number"
	case bool:
		into[prefix] = "bool"
	}
}

func TestJSONHasEveryFieldOfTheContract(t *testing.T) {
	var want any
	require.NoError(t, json.Unmarshal([]byte(contract), &want))
	wantPaths, gotPaths := map[string]string{}, map[string]string{}
	paths("", want, wantPaths)
	s := overload()
	s.Unavailable = nobody().Unavailable
	paths("", document(t, s), gotPaths)
	for path, kind := range wantPaths {
		require.Equal(t, kind, gotPaths[path], path)
	}
	more := make([]string, 0, len(gotPaths))
	for path := range gotPaths {
		if _, ok := wantPaths[path]; !ok && !strings.Contains(path, ".verdict.answer.") {
			more = append(more, path)
		}
	}
	slices.Sort(more)
	require.Equal(t, []string{
		".listeners[].connections.abandoned",
		".listeners[].connector.connection_timeout_seconds.source",
		".listeners[].connector.connection_timeout_seconds.value",
		".listeners[].connector.framework_version",
		".listeners[].connector.min_spare_threads.source",
		".listeners[].connector.min_spare_threads.value",
		".listeners[].expected",
		".listeners[].limits[].full_in_seconds",
		".listeners[].process.run_delay_seconds",
		".listeners[].process.safepoint_seconds",
	}, more, "the schema grows on purpose only")
}

func TestJSONValuesAreTheContracts(t *testing.T) {
	var want any
	require.NoError(t, json.Unmarshal([]byte(contract), &want))
	s := overload()
	wantListener := want.(map[string]any)["listeners"].([]any)[0].(map[string]any)
	gotListener := document(t, s)["listeners"].([]any)[0].(map[string]any)
	for _, key := range []string{"address", "port", "inode", "netns", "syn_backlog", "accept_queue", "capacity"} {
		require.Equal(t, wantListener[key], gotListener[key], key)
	}
	require.Equal(t, want.(map[string]any)["time"], document(t, s)["time"])
}

func TestJSONLeavesOutWhatIsNotKnown(t *testing.T) {
	l := document(t, unknownLimits())["listeners"].([]any)[0].(map[string]any)
	for _, key := range []string{"process", "connector", "syn_backlog", "connections", "capacity", "limits", "members"} {
		require.NotContains(t, l, key)
	}
	queue := l["accept_queue"].(map[string]any)
	require.NotContains(t, queue, "oldest_wait_seconds")
	require.NotContains(t, queue, "socket_drops")

	n := document(t, nobody())["listeners"].([]any)[0].(map[string]any)
	require.NotContains(t, n["connections"], "reset")
	require.NotContains(t, n["connector"], "max_threads")
	require.Equal(t, "default", n["connector"].(map[string]any)["max_connections"].(map[string]any)["source"], "the kind stands in for the words")
}

func TestJSONOfASingleLook(t *testing.T) {
	doc := document(t, singleLook())
	require.InDelta(t, 0, doc["interval_seconds"], 0)
	l := doc["listeners"].([]any)[0].(map[string]any)
	require.NotContains(t, l, "losses")
	require.NotContains(t, l["accept_queue"], "peak")
	require.NotContains(t, doc["netns"].([]any)[0], "delta")
}

func TestJSONOfADownPort(t *testing.T) {
	ls := document(t, down())["listeners"].([]any)
	require.Len(t, ls, 2)
	l := ls[1].(map[string]any) // 8080 comes first: sorted by port
	require.Equal(t, []string{"expected", "port", "verdict"}, slices.Sorted(maps.Keys(l)))
	require.InDelta(t, 9090, l["port"], 0)
	require.Equal(t, "down", l["verdict"].(map[string]any)["status"])
}

func TestJSONKeepsEmptyListsLists(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, render.JSON(&b, &model.Snapshot{Listeners: []model.Listener{{Losses: &model.Losses{}}}}))
	require.NotContains(t, b.String(), "null")
	for _, want := range []string{`"by": []`, `"worst_case": []`, `"chain": []`, `"findings": []`, `"netns": []`, `"unavailable": []`} {
		require.Contains(t, b.String(), want)
	}
}

func TestJSONSurvivesNumbersItCannotWrite(t *testing.T) {
	s := okIdle()
	s.Listeners[0].Limits = []model.Limit{{Name: "a", Ratio: math.Inf(1)}, {Name: "b", Ratio: math.NaN()}, {Name: "c", Ratio: .5}}
	limits := document(t, s)["listeners"].([]any)[0].(map[string]any)["limits"].([]any)
	require.NotContains(t, limits[0], "ratio")
	require.NotContains(t, limits[1], "ratio")
	require.InDelta(t, .5, limits[2].(map[string]any)["ratio"], 0)
}

func TestJSONSortsByPortThenAddress(t *testing.T) {
	s := snapshotOf(tomcat("[::1]:8080"), tomcat("127.0.0.1:9000"), tomcat("127.0.0.1:8080"), tomcat("[::1]:80"))
	var b bytes.Buffer
	require.NoError(t, render.JSON(&b, s))
	order := []string{`"[::1]:80"`, `"127.0.0.1:8080"`, `"[::1]:8080"`, `"127.0.0.1:9000"`}
	for i := 1; i < len(order); i++ {
		require.Less(t, strings.Index(b.String(), order[i-1]), strings.Index(b.String(), order[i]))
	}
	require.Equal(t, "[::1]:8080", s.Listeners[0].ID.String(), "the snapshot itself is immutable")
}

func TestJSONOfSettings(t *testing.T) {
	k := document(t, reuseport())["listeners"].([]any)[0].(map[string]any)["connector"].(map[string]any)
	require.Equal(t, map[string]any{"value": 20.0, "source": "argument --server.tomcat.connection-timeout"}, k["connection_timeout_seconds"])
	require.Equal(t, map[string]any{"value": true, "source": "application.yml"}, k["virtual_threads"])
	require.Equal(t, "somaxconn was 100 when the server called listen().", k["accept_count"].(map[string]any)["note"])
	doc := document(t, reuseport())
	require.InDelta(t, .4, doc["scan_age_seconds"], 1e-9)
	require.InDelta(t, 4, doc["listeners"].([]any)[0].(map[string]any)["members"], 0)
}
