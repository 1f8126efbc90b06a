package diagnosis

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What comes and goes by itself: a server that is busy and well for an hour
// stays ok in every second of it, through the same trend and hysteresis as the
// sampler's. (The trend is drawn through looks 15 to 30 s apart.)
func TestJudgeBusyButHealthyForAnHour(t *testing.T) {
	busy := func(n int) look { return tomcat(200, 8192, 100).pool(200).inService(min(n, 200)) }
	uniform := func(r *rand.Rand, mean float64) int { return int(mean) - 8 + r.IntN(17) }
	poisson := func(r *rand.Rand, mean float64) int { return int(mean + math.Sqrt(mean)*r.NormFloat64()) }
	for name, c := range map[string]struct {
		look func(r *rand.Rand) look
	}{
		"75 % of 200 threads, some requests on their way to one": {func(r *rand.Rand) look { return busy(uniform(r, 150)).waiting(r.IntN(4)) }},
		"82 % of 200 threads": {func(r *rand.Rand) look { return busy(uniform(r, 164)) }},
		"82 % of 200 threads, some requests on their way to one": {func(r *rand.Rand) look { return busy(uniform(r, 164)).waiting(1 + r.IntN(4)) }},
		"82 % of 200 threads, as clients come by chance":         {func(r *rand.Rand) look { return busy(poisson(r, 164)) }},
		"85 % of 200 threads, as clients come by chance":         {func(r *rand.Rand) look { return busy(poisson(r, 170)) }},
		"82 % of 1000 connections, virtual threads": {func(r *rand.Rand) look {
			return tomcat(200, 1000, 100).do(virtual).inService(poisson(r, 820))
		}},
		"the same, and some on their way through the queue": {func(r *rand.Rand) look {
			return tomcat(200, 1000, 100).do(virtual).inService(poisson(r, 820)).queue(1+r.IntN(3), time.Duration(r.IntN(9))*time.Millisecond)
		}},
		"85 % of 8192 connections": {func(r *rand.Rand) look {
			return tomcat(200, 8192, 100).do(virtual).inService(poisson(r, 6963))
		}},
		"82 % of 1000 connections, most of them idle": {func(r *rand.Rand) look {
			return tomcat(200, 1000, 100).inService(uniform(r, 20)).idle(poisson(r, 800)).queue(r.IntN(3), time.Millisecond)
		}},
		"60 % of the files, which are connections": {func(r *rand.Rand) look {
			return tomcat(200, 8192, 100).do(virtual).do(files(60, 1024)).inService(poisson(r, 560))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 7))
			var h Hysteresis
			start := time.Unix(1000, 0)
			past := []look{c.look(r)}
			for second := 1; second <= 3600; second++ {
				now, thresholds := c.look(r), reading.DefaultThresholds()
				ago := min(second, 15+second%15)
				now.Limits = reading.Headroom(now.Listener, past[second-ago].Listener, time.Duration(ago)*time.Second, sysctls(), thresholds)
				e := symptoms.Input{Now: now.Listener, Before: past[second-1].Listener, Elapsed: time.Second, Interval: time.Minute, Sysctl: sysctls()}
				v := h.Apply(start.Add(time.Duration(second)*time.Second), Judge(e, thresholds))
				require.Equal(t, ok.String(), v.Status.String(), "second %d: %s", second, v.Summary)
				for _, f := range v.Findings {
					require.NotContains(t, f.Code, "forecast", "second %d: %s", second, f.Evidence)
				}
				past = append(past, now)
			}
		})
	}
}

// The forecast is still there for what truly fills.
func TestJudgeWarnsOfWhatFills(t *testing.T) {
	conns := func(n int) look { return tomcat(200, 8192, 100).do(virtual).inService(n) }
	now := conns(6700)
	now.Limits = reading.Headroom(now.Listener, conns(5700).Listener, 20*time.Second, sysctls(), reading.DefaultThresholds())
	v := Judge(symptoms.Input{Now: now.Listener, Before: conns(6650).Listener, Elapsed: time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
	require.Equal(t, warning, v.Status, v.Summary)
	require.Equal(t, maxConns, v.Cause)
	require.Contains(t, v.Summary, "at this rate the limit is reached in about 30 s")
}

// No advice may propose what is set already: threads that are nearly all busy
// while nobody waits need no more of them, and requests that wait do.
func TestThreadsAreRaisedAboveWhatIsSet(t *testing.T) {
	for waiting := range 12 {
		k := tomcat(200, 8192, 100).pool(200).inService(190).waiting(waiting)
		s := symptoms.Of(symptoms.Input{Now: k.Listener}, reading.DefaultThresholds())
		require.NotContains(t, causes.AdviseThreads(s, model.Verdict{Cause: threads}), "from 200 to 200")
	}
}
