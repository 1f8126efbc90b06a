package plan

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlanInputErrors(t *testing.T) {
	tests := map[string]struct {
		change func(*Input)
		want   string
	}{
		"no load":             {func(in *Input) { in.Requests = 0 }, "--requests 0: must be 1 or more"},
		"negative load":       {func(in *Input) { in.Requests = -3 }, "--requests -3: "},
		"negative, with rate": {func(in *Input) { in.Requests, in.Rate = -3, 5 }, "--requests -3: "},
		"too many":            {func(in *Input) { in.Requests = 1_000_001 }, "--requests 1000001: must be 1000000 or less"},
		"too long":            {func(in *Input) { in.Requests, in.Rate, in.Duration = 0, 1e6, time.Minute }, "--duration 1m0s: at rate 1e+06"},
		"huge rate":           {func(in *Input) { in.Requests, in.Rate, in.Duration = 0, 1e300, 24*time.Hour }, "--duration 24h0m0s: at rate 1e+300"},
		"rate without end":    {func(in *Input) { in.Requests, in.Rate = 0, 10 }, "--rate 10: say for how long"},
		"negative rate":       {func(in *Input) { in.Rate = -1 }, "--rate -1: "},
		"no number":           {func(in *Input) { in.Rate = math.NaN() }, "--rate NaN: "},
		"infinite":            {func(in *Input) { in.Rate = math.Inf(1) }, "--rate +Inf: "},
		"duration alone":      {func(in *Input) { in.Duration = time.Second }, "--duration 1s: goes with --rate"},
		"negative duration":   {func(in *Input) { in.Duration = -time.Second }, "--duration -1s: "},
		"both":                {func(in *Input) { in.Rate, in.Duration = 5, time.Second }, "not both"},
		"no service time":     {func(in *Input) { in.ServiceTime = 0 }, "--service-time 0s: must be more than 0"},
		"endless service":     {func(in *Input) { in.ServiceTime = 25 * time.Hour }, "--service-time 25h0m0s: must be 24h or less"},
		"centuries of work":   {func(in *Input) { in.Requests, in.ServiceTime, in.ClientTimeout = 1_000_000, 24*time.Hour, 0 }, "--service-time 24h0m0s: 1000000 requests of that are 2740 years of work for one thread, a plan spans at most 100"},
		"centuries of calm":   {func(in *Input) { in.Rate = 1e-9 }, "--rate 1e-09: 10 requests come over more than 100 years"},
		"one in an eternity":  {func(in *Input) { in.Rate = math.SmallestNonzeroFloat64 }, "--rate 5e-324: 10 requests come over more"},
		"no threads":          {func(in *Input) { in.Threads = 0 }, "--max-threads 0: must be 1 or more, or -1"},
		"no connections":      {func(in *Input) { in.MaxConnections = 0 }, "--max-connections 0: must be 1 or more, or -1"},
		"no acceptCount":      {func(in *Input) { in.AcceptCount = 0 }, "--accept-count 0: must be 1 or more; Tomcat ignores"},
		"somaxconn":           {func(in *Input) { in.Somaxconn = -1 }, "--somaxconn -1: "},
		"syn backlog":         {func(in *Input) { in.MaxSynBacklog = -1 }, "--max-syn-backlog -1: "},
		"rhythm":              {func(in *Input) { in.SynRetries = "cubic" }, "--syn-retries cubic: must be linear"},
		"client timeout":      {func(in *Input) { in.ClientTimeout = -1 }, "--client-timeout -1ns: "},
		"connect timeout":     {func(in *Input) { in.ConnectTimeout = -time.Second }, "--connect-timeout -1s: "},
		"round trip":          {func(in *Input) { in.RoundTrip = time.Second }, "--round-trip 1s: must be 500ms or less"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := tomcatBurst(10)
			tt.change(&in)
			_, err := New(in)
			var wrong *InputError
			require.ErrorAs(t, err, &wrong)
			require.Contains(t, err.Error(), tt.want)
		})
	}
}

func TestPlanRate(t *testing.T) {
	in := tomcatBurst(0, func(in *Input) {
		in.Rate, in.Duration = 30, 10*time.Second
		in.ServiceTime, in.Threads = time.Second, 40
	})
	p := planOf(t, in)
	require.Equal(t, 300, p.Input.Requests)
	require.Equal(t, Outcomes{Served: 300}, p.Outcomes)
	require.Equal(t, time.Second, p.Latency.Max, "nobody waits")
	require.InDelta(t, 30, p.Stages[2].Peak, 1, "rate × service time")
	require.InDelta(t, 10.97, p.Duration.Seconds(), 0.01)

	in.Requests, in.Duration = 300, 0
	require.Equal(t, p.Outcomes, planOf(t, in).Outcomes)
}

func TestPlanOfTheLongestTimes(t *testing.T) {
	in := tomcatBurst(36_000, func(in *Input) {
		in.ServiceTime, in.ClientTimeout, in.ConnectTimeout, in.MaxConnections = maxPlanTime, 0, 0, -1
	})
	p := planOf(t, in)
	require.Equal(t, 180*maxPlanTime, p.Duration)
	require.Equal(t, &Limits{1, 35_899, 100, 0}, p.Smallest)

	in.Requests, in.Rate, in.Duration = 0, 1e-12, time.Second
	require.Equal(t, Outcomes{Served: 1}, planOf(t, in).Outcomes, "the first comes at once, however seldom they come")
}
