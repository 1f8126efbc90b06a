package diagnosis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The share is one: between 0 and 1 however many CPUs there are.
func TestThrottlingShare(t *testing.T) {
	type after struct {
		kept, used         time.Duration
		throttled, periods uint64
	}
	for name, c := range map[string]struct {
		after
		want float64
	}{
		"no limit":                            {after{0, 3 * time.Second, 0, 0}, 0},
		"a limit that does not bite":          {after{0, time.Second, 0, 10}, 0},
		"one thread with half a CPU":          {after{500 * time.Millisecond, 500 * time.Millisecond, 10, 10}, .5},
		"16 CPUs, a thirtieth of each":        {after{512 * time.Millisecond, 8 * time.Second, 10, 10}, .06},
		"16 CPUs, nearly all of each":         {after{15200 * time.Millisecond, 800 * time.Millisecond, 10, 10}, .95},
		"one period of ten":                   {after{1500 * time.Millisecond, 100 * time.Millisecond, 1, 10}, .1},
		"two limits that both throttle":       {after{time.Second, time.Second, 20, 10}, .5},
		"nothing was run, the looks are near": {after{time.Second, 0, 1, 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			start := tomcat(1, 1, 1).do(cpu(time.Hour, time.Hour, 1000, 1000))
			now := tomcat(1, 1, 1).do(cpu(time.Hour+c.kept, time.Hour+c.used, 1000+c.throttled, 1000+c.periods))
			p := reading.Pair{Now: now.Listener, Before: start.Listener, Elapsed: time.Second, T: reading.DefaultThresholds()}
			require.InDelta(t, c.want, p.Throttling().Fraction(), .005)
		})
	}
	known := tomcat(1, 1, 1).do(cpu(0, 0, 0, 0))
	for _, hide := range []func(*model.Process){
		func(p *model.Process) { p.CPUThrottled = nil },
		func(p *model.Process) { p.CPUUsed = nil },
		func(p *model.Process) { p.CPUPeriods = nil },
		func(p *model.Process) { p.CPUPeriodsThrottled = nil },
	} {
		now := tomcat(1, 1, 1).do(cpu(time.Second, time.Second, 10, 10))
		hide(now.Process)
		require.Zero(t, reading.Pair{Now: now.Listener, Before: known.Listener, Elapsed: time.Second}.Throttling())
	}
}

func TestAdviseThrottled(t *testing.T) {
	var lost *model.Losses
	var shown *model.Shown
	advised := func(limit *float64, kept, used time.Duration) string {
		now := tomcat(1, 1, 1).do(cpu(kept, used, 10, 10))
		now.Process.CPULimit, now.Losses = limit, lost
		s := symptoms.Of(symptoms.Input{Now: now.Listener, Before: tomcat(1, 1, 1).do(cpu(0, 0, 0, 0)).Listener, Elapsed: time.Second, Shown: shown}, reading.DefaultThresholds())
		return causes.AdviseThrottled(s)
	}
	require.Contains(t, advised(new(.5), 1500*time.Millisecond, 500*time.Millisecond), "of the unit) from 0.5 to 2 CPUs, as much as the process wanted, or remove it")
	require.Contains(t, advised(new(1.25), 750*time.Millisecond, 1250*time.Millisecond), "from 1.25 to 2 CPUs")
	require.Contains(t, advised(nil, 1500*time.Millisecond, 500*time.Millisecond), "to 4 times what it is")
	require.Contains(t, advised(new(.1), 1900*time.Millisecond, 100*time.Millisecond), "of the unit), or remove it", "20 times as much is no number to set")
	require.Contains(t, advised(new(.1), 0, time.Second), "of the unit), or remove it", "not throttled now")

	clients := &model.Clients{Observed: 10 * time.Second}
	clients.Arrivals = &model.Arrivals{First: time.Minute}
	clients.Begun, clients.Answers = 200, model.ClientAnswers{Known: true, Unanswered: 190}
	lost = &model.Losses{Clients: clients, AbandonedRequests: 80}
	nearlyAll := func() string { return advised(new(.1), 1900*time.Millisecond, 100*time.Millisecond) }
	require.Contains(t, nearlyAll(), "from 0.1 to 0.4 CPUs, for all who come: of 200 clients in the last 10 s it is enough for 80, or remove it")
	clients.Begun, clients.Answers.Checks = 300, 100
	require.Contains(t, nearlyAll(), "of 200 clients in the last 10 s it is enough for 80", "checks take no CPU time")
	clients.Begun, clients.Answers.Checks = 200, 0
	require.Contains(t, advised(new(.1), 880*time.Millisecond, 120*time.Millisecond), "from 0.1 to 0.4 CPUs", "and not 0.9: its threads are many")
	shown = &model.Shown{Verdict: model.Verdict{Answer: model.Answer{Do: []model.Step{{Setting: "CPU limit", From: "0.1", To: "0.6"}}}}}
	require.Contains(t, nearlyAll(), "from 0.1 to 0.6 CPUs, for the most that have come since the trouble began, or remove it", "it does not shrink")
	clients.Arrivals.First = 12 * time.Second
	require.Contains(t, advised(new(.1), 880*time.Millisecond, 120*time.Millisecond), "of the unit), or remove it", "they have just begun to come: more will be known")
	shown, clients.Arrivals.First = nil, time.Minute
	lost.AbandonedRequests = 4
	require.Contains(t, nearlyAll(), "of the unit), or remove it", "too few requests show what one takes")
	lost.AbandonedRequests, clients.Begun = 80, 60
	require.Contains(t, nearlyAll(), "of the unit), or remove it", "it is enough for those who come")
	clients.Begun, clients.Flood = 200, &model.ClientFlood{}
	require.Contains(t, nearlyAll(), "of the unit), or remove it", "nobody is behind a flood")
}

// Where others want the CPU, too, it is advised what all who come take of it.
func TestGiveCPU(t *testing.T) {
	clients := &model.Clients{Observed: 10 * time.Second, Arrivals: &model.Arrivals{First: time.Minute}}
	clients.Begun, clients.Answers = 200, model.ClientAnswers{Known: true, Unanswered: 190, Answered: 40}
	var shown *model.Shown
	step := func(used time.Duration) model.Step {
		now := tomcat(1, 1, 1).do(cpu(0, used, 0, 0))
		now.Losses = &model.Losses{Clients: clients}
		s := symptoms.Of(symptoms.Input{Now: now.Listener, Before: tomcat(1, 1, 1).do(cpu(0, 0, 0, 0)).Listener, Elapsed: time.Second, Shown: shown}, reading.DefaultThresholds())
		return advice.GiveCPU(s, "Give it more")
	}
	require.Equal(t, model.Step{Text: "Give it more", Setting: advice.CPUShare, From: "0.06", To: "0.4", Limit: reading.LimitCPU}, step(60*time.Millisecond))
	shown = &model.Shown{Verdict: model.Verdict{Answer: model.Answer{Do: []model.Step{{Setting: advice.CPUShare, From: "0.1", To: "0.7"}}}}}
	require.Equal(t, "0.7", step(60*time.Millisecond).To, "it does not shrink")
	require.Empty(t, step(0).Setting, "how much it gets is not known")
	clients.Answers.Answered = 20
	require.Empty(t, step(60*time.Millisecond).Setting, "12 times as much is no number to give")
	clients.Answers.Known = false
	require.Empty(t, step(60*time.Millisecond).Setting)
}
