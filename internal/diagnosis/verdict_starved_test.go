package diagnosis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// unreadFor is how long the oldest request has been there of which nobody read a byte.
func unreadFor(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.Connections.Unread = d }
}

// Clients that wait for seconds are never said to be well, although no limit is reached.
func TestStarved(t *testing.T) {
	waits := func() look {
		return tomcat(200, 8192, 100).pool(100).inService(12).waiting(28).do(unreadFor(2 * time.Second))
	}
	next := func() look {
		return tomcat(200, 8192, 100).pool(100).inService(40).do(func(l *model.Listener) { l.Connections.UnreadNext = 2 * time.Second })
	}
	throttled := cpu(2900*time.Millisecond, 30*time.Millisecond, 30, 30)
	crowded := func(l *model.Listener) { l.Process.RunDelay = new(9 * time.Second) }
	frozen := func(l *model.Listener) { l.Process.Frozen = true }
	stop := func(l *model.Listener) { l.Process.Stopped = true }
	crashed := func(l *model.Listener) { l.Process.Dumping, l.Process.InSafepoint = true, new(5*time.Second) }
	for name, c := range map[string]struct {
		look   func() look
		now    func(*model.Listener)
		status model.Status
		cause  model.Cause
		says   string
	}{
		"a CPU limit": {waits, throttled, saturated, model.CauseCPUThrottled, "28 requests wait to be read because the CPU limit throttled the process in 30 of 30 periods"},
		"a CPU limit that withholds a third": {
			waits, cpu(1200*time.Millisecond, 2400*time.Millisecond, 12, 30), saturated, model.CauseCPUThrottled, "because the CPU limit throttled the process in 12 of 30 periods",
		},
		"a CPU limit that withholds a tenth": {
			waits, cpu(300*time.Millisecond, 2700*time.Millisecond, 3, 30), warning, model.CauseNone, "28 requests wait to be read, the first for over 2 s; why is unknown",
		},
		"a CPU limit makes pauses long": {
			waits, func(l *model.Listener) { throttled(l); l.Process.InSafepoint = new(time.Second) }, saturated, model.CauseCPUThrottled, "because the CPU limit",
		},
		"others have the CPUs": {waits, crowded, saturated, model.CauseCPUSaturated, "28 requests wait to be read because on average 3 of the process's threads waited for a CPU"},
		"nothing explains it":  {waits, func(*model.Listener) {}, warning, model.CauseNone, "28 requests wait to be read, the first for over 2 s; why is unknown"},
		"pauses, and what waits for a CPU, may be the poller's": {
			waits, func(l *model.Listener) {
				l.Process.SafepointTime, l.Process.RunDelay = new(500*time.Millisecond), new(300*time.Millisecond)
			}, warning, model.CauseNone, "28 requests wait to be read",
		},
		"pauses of a fifth of the time": {
			waits, func(l *model.Listener) { l.Process.SafepointTime = new(700 * time.Millisecond) }, saturated, model.CauseJVMPause, "28 requests wait to be read because the JVM stood still",
		},
		"the CPU alone may be what the poller lacked": {
			waits, func(l *model.Listener) { l.Process.RunDelay = new(800 * time.Millisecond) }, warning, model.CauseNone, "28 requests wait to be read",
		},
		"pauses too short for that": {
			waits, func(l *model.Listener) { l.Process.SafepointTime = new(100 * time.Millisecond) }, warning, model.CauseNone, "28 requests wait to be read, the first for over 2 s; why is unknown",
		},
		"a moment":             {waits, func(l *model.Listener) { throttled(l); l.Connections.Unread = time.Second / 2 }, ok, model.CauseNone, "Nothing is lost"},
		"every thread has one": {func() look { return waits().pool(12) }, crowded, saturated, threads, "All 12 threads are busy"},
		"the pool was not known in the look before": {
			func() look { return waits().pool(200).inService(200) }, func(*model.Listener) {}, saturated, threads, "All 200 threads are busy",
		},
		"a later request":        {next, throttled, saturated, model.CauseCPUThrottled, "40 requests wait for an answer because the CPU limit"},
		"or bodies not read yet": {next, func(*model.Listener) {}, ok, model.CauseNone, "Nothing is lost and nothing is held up"},
		"stopped":                {next, stop, saturated, model.CauseJVMPause, "40 requests wait for an answer because the process is stopped (state T)"},
		"frozen":                 {next, frozen, saturated, model.CauseJVMPause, "40 requests wait for an answer because the process is frozen with its cgroup"},
		"frozen, a queue": {
			func() look { return tomcat(200, 8192, 100).queue(40, 5*time.Second) }, frozen, saturated, model.CauseJVMPause,
			"40 connections wait in the accept queue (capacity 101) because the process is frozen with its cgroup",
		},
		"crashed, a queue": {
			func() look { return tomcat(200, 8192, 100).queue(40, 5*time.Second) }, crashed, saturated, model.CauseJVMPause,
			"40 connections wait in the accept queue (capacity 101) because the process has crashed, and its core dump is being written",
		},
		"a queue before a throttled server": {
			func() look { return tomcat(200, 8192, 100).queue(40, 5*time.Second) }, throttled, saturated, model.CauseCPUThrottled,
			"40 connections wait in the accept queue (capacity 101) because the CPU limit",
		},
		"frozen, and nobody there": {func() look { return tomcat(200, 8192, 100) }, frozen, ok, model.CauseNone, "Nothing is lost"},
		"stopped, idle clients":    {func() look { return tomcat(200, 8192, 100).idle(40) }, stop, ok, model.CauseNone, "Nothing is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			none := func(l *model.Listener) {
				l.Process.RunDelay, l.Process.SafepointTime = new(time.Duration(0)), new(time.Duration(0))
			}
			before := c.look().do(cpu(0, 0, 0, 0)).do(none)
			now := c.look().do(cpu(0, 0, 0, 0)).do(none).do(c.now)
			if name == "the pool was not known in the look before" {
				before.Connector = nil
			}
			if reading.Stopped(now.Listener) {
				before.do(c.now)
			}
			limited, was := reading.Infer(before.Listener, now.Listener, 0)
			now.Connector = limited
			v := Judge(symptoms.Input{Now: now.Listener, Before: was, Elapsed: 3 * time.Second, Interval: 3 * time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
			require.Equal(t, c.status, v.Status, v.Summary)
			require.Equal(t, c.cause, v.Cause, v.Summary)
			require.Contains(t, v.Summary, c.says)
			if c.status == warning {
				require.Equal(t, "requests_stand", v.Findings[0].Code)
			}
		})
	}
}

// Threads that wait for a CPU while all have a request: most of them are the cause, some
// are named beside it, and a few are those of any busy machine. At a safepoint the others
// wait for those that have to get there.
func TestCPUBesideThreads(t *testing.T) {
	for name, c := range map[string]struct {
		waited, stood time.Duration // of all threads, of the JVM
		cause         model.Cause
		beside        bool
	}{
		"nobody":                        {0, 0, threads, false},
		"half a thread":                 {1500 * time.Millisecond, 0, threads, false},
		"a tenth of them":               {6 * time.Second, 0, threads, true},
		"most of them":                  {45 * time.Second, 0, model.CauseCPUSaturated, false},
		"some, and the others stand":    {6 * time.Second, 2 * time.Second, model.CauseCPUSaturated, false},
		"nobody, and they stand a time": {0, 2 * time.Second, model.CauseJVMPause, false},
	} {
		t.Run(name, func(t *testing.T) {
			full := func(waited, stood time.Duration) *model.Listener {
				return tomcat(20, 8192, 100).pool(20).inService(20).waiting(20).do(func(l *model.Listener) {
					l.Process.RunDelay, l.Process.SafepointTime = new(waited), new(stood)
				}).Listener
			}
			now := full(c.waited, c.stood)
			v := Judge(symptoms.Input{Now: now, Before: full(0, 0), Elapsed: 3 * time.Second, Interval: 3 * time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
			require.Equal(t, saturated, v.Status)
			require.Equal(t, c.cause, v.Cause, v.Summary)
			found := slices.ContainsFunc(v.Findings[1:], func(f model.Finding) bool { return f.Code == string(model.CauseCPUSaturated) })
			require.Equal(t, c.beside, found)
			require.Equal(t, c.beside, strings.Contains(v.Findings[0].Advice, "See cpu_saturated first"))
		})
	}
}

// A JVM that collects most of the time, on as many CPUs as it uses: its collector's threads wait for one, and all others after each pause.
func TestCollectionsWaitForACPU(t *testing.T) {
	for name, c := range map[string]struct {
		used, collected time.Duration
		cause           model.Cause
	}{
		"it has most of the CPUs":           {1700 * time.Millisecond, 600 * time.Millisecond, model.CauseJVMPause},
		"others have them":                  {300 * time.Millisecond, 600 * time.Millisecond, model.CauseCPUSaturated},
		"it does not stop for the heap":     {1700 * time.Millisecond, 100 * time.Millisecond, model.CauseCPUSaturated},
		"it collects, and has all it wants": {1700 * time.Millisecond, 650 * time.Millisecond, model.CauseJVMPause},
	} {
		t.Run(name, func(t *testing.T) {
			full := func(pause, waited, used, collected time.Duration) *model.Listener {
				return tomcat(10, 200, 100).pool(10).inService(10).waiting(30).do(func(l *model.Listener) {
					l.Process.SafepointTime, l.Process.RunDelay, l.Process.CPUUsed, l.Process.GCTime = &pause, &waited, &used, &collected
				}).Listener
			}
			v := Judge(symptoms.Input{
				Now: full(650*time.Millisecond, 1300*time.Millisecond, c.used, c.collected), Before: full(0, 0, 0, 0),
				Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls(),
			}, reading.DefaultThresholds())
			require.Equal(t, c.cause, v.Cause, v.Summary)
		})
	}
}

// A JVM of few busy threads that sleep, on a loaded machine: those that wait for a CPU
// are its compilers.
func TestHandlersThatSleepWaitForNoCPU(t *testing.T) {
	for name, c := range map[string]struct {
		workers *model.Workers
		cause   model.Cause
	}{
		"they sleep":          {&model.Workers{Threads: 2, Parked: 2}, threads},
		"they wait for a CPU": {&model.Workers{Threads: 2, Running: 2}, model.CauseCPUSaturated},
		"they were not read":  {nil, model.CauseCPUSaturated},
		"one of them does":    {&model.Workers{Threads: 2, Running: 1, Parked: 1}, model.CauseCPUSaturated},
		"another one's run":   {&model.Workers{Threads: 12, Running: 2, Parked: 10}, model.CauseCPUSaturated},
	} {
		t.Run(name, func(t *testing.T) {
			full := func(waited time.Duration) *model.Listener {
				return tomcat(2, 8192, 100).pool(2).inService(2).waiting(20).do(func(l *model.Listener) {
					l.Process.RunDelay = new(waited)
					l.Process.Downstream = &model.Downstream{Workers: c.workers}
				}).Listener
			}
			v := Judge(symptoms.Input{Now: full(4 * time.Second), Before: full(0), Elapsed: 3 * time.Second, Interval: 3 * time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
			require.Equal(t, c.cause, v.Cause, v.Summary)
		})
	}
}

// More threads are not advised where most of those that there are use a CPU, or wait for one.
func TestNoMoreThreadsForTheSameCPUs(t *testing.T) {
	for name, c := range map[string]struct {
		running int
		worse   bool
	}{"five of six": {5, true}, "one of six": {1, false}} {
		t.Run(name, func(t *testing.T) {
			full := func(waited time.Duration) *model.Listener {
				return tomcat(6, 8192, 100).pool(6).inService(6).waiting(20).do(func(l *model.Listener) {
					l.Process.RunDelay = new(waited)
					l.Process.Downstream = &model.Downstream{Workers: &model.Workers{Threads: 6, Running: c.running, Parked: 6 - c.running}}
				}).Listener
			}
			v := Judge(symptoms.Input{Now: full(4 * time.Second), Before: full(0), Elapsed: 3 * time.Second, Interval: 3 * time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
			require.Equal(t, threads, v.Cause, v.Summary)
			require.Equal(t, c.worse, v.Answer.Do[0].Text == "Give the process more CPU, or shed load before it gets here", v.Answer.Do)
			require.Equal(t, c.worse, strings.Contains(v.Findings[0].Advice, "More threads, connections or acceptCount would make it worse"), v.Findings[0].Advice)
		})
	}
}

// More threads are not advised where none can be started.
func TestNoMoreThreads(t *testing.T) {
	full := func() look {
		return tomcat(200, 8192, 100).pool(7).inService(7).waiting(33).do(func(l *model.Listener) { l.Process.Threads, l.Process.PIDsLimit = new(32), new(34) })
	}
	now := full()
	limited, was := reading.Infer(full().Listener, now.Listener, 0)
	now.Connector = limited
	v := Judge(symptoms.Input{Now: now.Listener, Before: was, Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls()}, reading.DefaultThresholds())
	require.Equal(t, threads, v.Cause)
	require.Contains(t, v.Findings[0].Advice, "See pids_limit: no more threads than these can be started")
	require.NotContains(t, v.Findings[0].Advice, "raise server.tomcat.threads.max")
}
