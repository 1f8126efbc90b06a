package render_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/plan"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/planreport"
)

func plans(tb testing.TB) map[string]*plan.Plan {
	tb.Helper()
	in := plan.Input{
		Requests: 10000, ServiceTime: 5 * time.Second, Threads: 1000, MaxConnections: 8192, AcceptCount: 100,
		ClientTimeout: time.Minute, ConnectTimeout: 900 * time.Millisecond, Syncookies: true,
	}
	with := func(change func(*plan.Input)) *plan.Plan {
		other := in
		change(&other)
		p, err := plan.New(other)
		require.NoError(tb, err)
		return p
	}
	return map[string]*plan.Plan{
		"a1": with(func(in *plan.Input) { in.Requests, in.Threads = 300, 200 }),
		"a3": with(func(in *plan.Input) { in.Requests, in.Threads = 3000, 200 }),
		"a5": with(func(*plan.Input) {}),
		"a9_patient": with(func(in *plan.Input) {
			in.Requests, in.Threads, in.MaxConnections, in.AcceptCount = 10, 1, 1, 1
			in.ConnectTimeout = 30 * time.Second
		}),
		"d2_open_loop": with(func(in *plan.Input) {
			in.Requests, in.Rate, in.Duration = 0, 4000, 10*time.Second
			in.ServiceTime, in.Threads, in.MaxConnections, in.AcceptCount = 60*time.Millisecond, 100, 1000, 5000
			in.ClientTimeout, in.ConnectTimeout = 5*time.Second, 5*time.Second
			in.TimeoutFromConnect = true
		}),
		"abort_on_overflow": with(func(in *plan.Input) {
			in.Requests, in.Threads, in.MaxConnections, in.AcceptCount = 10, 1, 1, 3
			in.ServiceTime, in.ConnectTimeout, in.AbortOnOverflow = 600*time.Millisecond, 2*time.Second, true
		}),
		"hopeless": with(func(in *plan.Input) {
			in.Requests, in.ServiceTime, in.MaxConnections, in.ConnectTimeout = 1, 70*time.Second, -1, 0
		}),
		"no_syncookies": with(func(in *plan.Input) {
			in.Requests, in.RoundTrip, in.Syncookies = 500, 40*time.Millisecond, false
		}),
	}
}

func TestPlanTextGolden(t *testing.T) {
	for name, p := range plans(t) {
		for suffix, o := range map[string]render.TextOptions{"80": {Width: 80}, "120": {Width: 120}} {
			t.Run(name+"_"+suffix, func(t *testing.T) {
				checkGolden(t, "plan_"+name+"_"+suffix+".txt", planText(t, p, o))
			})
		}
	}
}

// On a terminal the outcome does not scroll away; what is left out is said.
func TestPlanFitsTheScreen(t *testing.T) {
	for name, p := range plans(t) {
		got := string(planText(t, p, render.TextOptions{Width: 80, Height: 24}))
		require.LessOrEqual(t, strings.Count(got, "\n"), 23, "%s:\n%s", name, got)
		whole := string(planText(t, p, render.TextOptions{Width: 80, Height: 60}))
		require.Equal(t, string(planText(t, p, render.TextOptions{Width: 80})), whole, name)
		require.Equal(t, len(got) < len(whole), strings.Contains(got, "| less shows"), name)
	}
}

func TestPlanTextInColour(t *testing.T) {
	p := plans(t)["a5"]
	checkGolden(t, "plan_a5_colour.txt", planText(t, p, render.TextOptions{Width: 80, Color: true}))
}

// Every width holds: nothing runs over the edge and nothing is cut off.
func TestPlanTextWidths(t *testing.T) {
	for name, p := range plans(t) {
		for width := 40; width <= 120; width += 8 {
			out := string(planText(t, p, render.TextOptions{Width: width}))
			require.NotContains(t, out, "…", "%s at %d", name, width)
			for line := range strings.Lines(out) {
				require.LessOrEqual(t, lipgloss.Width(strings.TrimSuffix(line, "\n")), width, "%s at %d: %q", name, width, line)
			}
		}
	}
}

// Colours add nothing that plain text does not say.
func TestPlanTextColourIsOnlyColour(t *testing.T) {
	escapes := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for name, p := range plans(t) {
		plain := planText(t, p, render.TextOptions{Width: 200})
		coloured := escapes.ReplaceAll(planText(t, p, render.TextOptions{Width: 200, Color: true}), nil)
		require.Equal(t, strings.Join(strings.Fields(string(plain)), " "), strings.Join(strings.Fields(string(coloured)), " "), name)
	}
}

func planText(tb testing.TB, p *plan.Plan, o render.TextOptions) []byte {
	tb.Helper()
	var b bytes.Buffer
	require.NoError(tb, planreport.Text(&b, p, o))
	return b.Bytes()
}

func TestPlanJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, planreport.JSON(&b, plans(t)["a5"]))
	var doc struct {
		Schema   string
		Input    map[string]any
		Capacity int
		Duration float64 `json:"duration_seconds"`
		Outcomes map[string]int
		Latency  map[string]float64 `json:"latency_seconds"`
		Timeline []map[string]float64
		Smallest map[string]int
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &doc))
	require.Equal(t, "tcpdiag.plan/v1", doc.Schema)
	require.Equal(t, map[string]int{"served": 8293, "connect_timeout": 1707, "read_timeout": 0, "reset": 0}, doc.Outcomes)
	require.Equal(t, 8293, doc.Capacity)
	require.Equal(t, map[string]int{"threads": 910, "max_connections": 8192, "accept_count": 1807}, doc.Smallest)
	require.Equal(t, map[string]float64{"p50": 25, "p95": 40, "p99": 45, "max": 45}, doc.Latency)
	require.InDelta(t, 45, doc.Duration, 0.001)
	for key, want := range map[string]float64{
		"requests": 10000, "service_time_seconds": 5, "threads": 1000, "max_connections": 8192,
		"accept_count": 100, "client_timeout_seconds": 60, "connect_timeout_seconds": 0.9,
	} {
		require.Equal(t, want, doc.Input[key], key)
	}
	require.Equal(t, map[string]float64{
		"t": 0, "in_service": 1000, "waiting": 7192, "accept_queue": 101, "half_open": 0, "retrying": 1707, "served": 0, "lost": 0,
	}, doc.Timeline[0])
}

// What does not exist is left out, not zero.
func TestPlanJSONLeavesOut(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, planreport.JSON(&b, plans(t)["hopeless"]))
	var doc map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &doc))
	for _, key := range []string{"capacity", "latency_seconds", "smallest"} {
		require.NotContains(t, doc, key)
	}
	require.NotContains(t, doc["input"], "connect_timeout_seconds")
	require.NotContains(t, doc["input"], "rate")
	require.Equal(t, []any{}, doc["notes"].([]any)[1:], "one note: the work for nobody")
}

func TestPlanJSONGolden(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, planreport.JSON(&b, plans(t)["abort_on_overflow"]))
	checkGolden(t, "plan_abort_on_overflow.json", b.Bytes())
}
