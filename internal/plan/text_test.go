package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlanSummaryAndNotes(t *testing.T) {
	one := func(in *Input) { in.Threads, in.MaxConnections, in.AcceptCount = 1, 1, 1 }
	tests := []struct {
		name    string
		in      Input
		summary string
		codes   []string
	}{
		{"A1", tomcatBurst(300), "All 300 clients are served, the last after 10 s.", nil},
		{
			"A3", tomcatBurst(3000),
			"2,200 of 3,000 clients are served, 800 give up waiting for the response after 60 s.",
			[]string{"max_threads", "wasted_work", "close_call"},
		},
		{
			"A3, clients a little more patient", tomcatBurst(3000, func(in *Input) { in.ClientTimeout += 500 * time.Millisecond }),
			"2,400 of 3,000 clients are served, 600 give up waiting for the response after 60.5 s.",
			[]string{"max_threads", "wasted_work", "close_call"},
		},
		{
			"A5", tomcatBurst(10000, func(in *Input) { in.Threads = 1000 }),
			"8,293 of 10,000 clients are served, 1,707 give up connecting after 900 ms.",
			[]string{"max_connections"},
		},
		{
			"A9", tomcatBurst(10, one, func(in *Input) { in.ServiceTime, in.ConnectTimeout = time.Second/2, 2*time.Second }),
			"All 10 clients are served, 7 of them only by trying again, the last after 5.35 s.",
			[]string{"max_connections", "half_open"},
		},
		{
			"F2", tomcatBurst(300, func(in *Input) { in.MaxConnections, in.AcceptCount, in.Somaxconn = 1, 5000, 128 }),
			"11 of 300 clients are served, 170 give up connecting after 900 ms, 119 give up waiting for the response after 60 s.",
			[]string{"max_threads", "max_connections", "backlog_clamped", "wasted_work"},
		},
		{
			"whole timeout while connecting", tomcatBurst(10, one, func(in *Input) { in.ClientTimeout, in.ConnectTimeout = 6*time.Second, 0 }),
			"1 of 10 clients is served, 9 give up waiting for the response after 6 s.",
			[]string{"max_connections", "half_open", "wasted_work"},
		},
		{
			"nobody", tomcatBurst(2, func(in *Input) { in.ServiceTime = 2 * time.Minute }),
			"None of 2 clients is served, 2 give up waiting for the response after 60 s.",
			[]string{"wasted_work"},
		},
		{
			"the only one", tomcatBurst(1, func(in *Input) { in.ServiceTime = 2 * time.Minute }),
			"The only client is not served, 1 gives up waiting for the response after 60 s.",
			[]string{"wasted_work"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := planOf(t, tt.in)
			require.Equal(t, tt.summary, p.Summary())
			var codes []string
			for _, n := range p.Notes() {
				codes = append(codes, n.Code)
			}
			require.Equal(t, tt.codes, codes)
		})
	}
}

func TestPlanSmallestNotes(t *testing.T) {
	p := planOf(t, tomcatBurst(15000, func(in *Input) { in.Threads = 2000 }))
	require.Equal(t, &Limits{1364, 8192, 6807, 0}, p.Smallest)
	require.Equal(t, []string{
		"accept-count 6,807 needs net.core.somaxconn of as much (now 4,096), set before the server starts.",
		"Or leave accept-count at 100 and set max-connections to 14,899; mind the open files.",
	}, p.SmallestNotes())

	p = planOf(t, tomcatBurst(1, func(in *Input) { in.ServiceTime = 2 * time.Minute }))
	require.Nil(t, p.Smallest)
	require.Equal(t, []string{"A request alone takes 120 s, and its client waits no longer than 60 s."}, p.SmallestNotes())

	p = planOf(t, tomcatBurst(5, func(in *Input) { in.RoundTrip, in.ConnectTimeout = 200*time.Millisecond, 100*time.Millisecond }))
	require.Equal(t, Outcomes{ConnectTimeout: 5}, p.Outcomes)
	require.Equal(t, []string{"The round trip of 200 ms is longer than the connect timeout (100 ms)."}, p.SmallestNotes())
}

// In an open loop the smallest pool may only last for a limited time.
func TestPlanPace(t *testing.T) {
	in := tomcatBurst(0, func(in *Input) {
		in.Rate, in.Duration = 1000, 10*time.Second
		in.ServiceTime, in.ClientTimeout = 100*time.Millisecond, 5*time.Second
	})
	in.Threads = 50
	p := planOf(t, in)
	require.Less(t, p.Smallest.Threads, 100)
	require.Contains(t, p.SmallestNotes()[0], "to keep pace with 1,000/s for ever takes 100 threads")
	require.Contains(t, p.Notes()[0].Text, "50 threads finish 500 requests/s, and 1,000/s come")
}
