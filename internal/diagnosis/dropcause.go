package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// DropCause names the limit behind packets that a listener dropped at its accept
// queue between two snapshots, one of model.DropCauses. before may be nil. It
// answers CauseAcceptQueue where it is not known for certain that maxConnections is
// not reached, and nothing else explains the full queue.
func DropCause(before, now *model.Listener, elapsed time.Duration, t Thresholds) model.Cause {
	return pair{now: now, before: before, elapsed: elapsed, t: t}.queueCause()
}

// queueCause names what keeps the accept queue from being emptied. A limit
// counts when either snapshot shows it: the drops lie between the two.
func (p pair) queueCause() model.Cause {
	if p.either(stopped) {
		return model.CauseJVMPause
	}
	if p.either(p.atConnectionLimit) {
		return p.connectionsCause()
	}
	if p.either(p.filesFull) {
		return model.CauseOpenFiles
	}
	if c := p.stalled(); c != model.CauseNone {
		return c
	}
	if p.now == nil || connectionLimit(p.now) == limitUnknown || uncertainLimit(p.now) || inexact(p.now) || slotsUncounted(p.now) {
		return model.CauseAcceptQueue
	}
	return model.CauseSlowAccept
}

// connectionsCause says why the connections are all taken.
func (p pair) connectionsCause() model.Cause {
	if c := p.cpuOverrides(); c != model.CauseNone {
		return c
	}
	if p.mostlyIdle() {
		return model.CauseKeepAliveIdle
	}
	return model.CauseMaxConnections
}

// stalled reports whether the process could not run between the snapshots. It is
// only evidence together with an accept queue that fills.
func (p pair) stalled() model.Cause {
	switch {
	case p.throttling().share() >= p.t.CPUOverrides: // then a safepoint takes as long
		return model.CauseCPUThrottled
	case p.stoodStill():
		return model.CauseJVMPause
	case p.throttling().share() >= p.t.ThrottledShare:
		return model.CauseCPUThrottled
	case p.share(runDelay) >= p.t.RunDelay:
		return model.CauseCPUSaturated
	}
	return model.CauseNone
}

// stoodStill reports whether the JVM was stopped at a safepoint for long enough.
func (p pair) stoodStill() bool {
	pause := p.pause()
	return pause >= p.t.PauseMin && pause.Seconds() >= p.t.PauseShare*p.between().Seconds()
}

// pause is the time of the safepoints that ended between the snapshots and of the
// one that is under way. They may have begun before the first snapshot: a long one
// outlasts several.
func (p pair) pause() time.Duration {
	pause, _ := p.total(safepointTime)
	if p.now != nil && p.now.Process != nil && p.now.Process.InSafepoint != nil {
		pause += *p.now.Process.InSafepoint
	}
	return pause
}

// cpuOverrides names the CPU although connections or threads are exhausted:
// with that little of it the handlers cannot finish, and more threads would
// only wait for it too. A thread that sleeps or waits for a database waits for
// no CPU.
func (p pair) cpuOverrides() model.Cause {
	if p.throttling().share() >= p.t.CPUOverrides {
		return model.CauseCPUThrottled
	}
	need := 2 * p.t.RunDelay // virtual threads: a few carriers, as many as CPUs
	if !virtualThreads(p.now) {
		busy, ok := busyThreads(p.now)
		if !ok {
			return model.CauseNone
		}
		need = max(need, p.t.CPUOverrides*float64(busy))
		if !p.stoodStill() && runningBelow(p.now, p.t.CPUOverrides*float64(busy)) {
			return model.CauseNone // its compilers and collectors wait, not the handlers
		}
	}
	if p.stoodStill() { // it waits for those that have to get to the safepoint first
		need = 2 * p.t.RunDelay
	}
	if p.share(runDelay) >= need {
		return model.CauseCPUSaturated
	}
	return model.CauseNone
}

// runningBelow reports whether fewer worker threads than that were seen to run or to
// wait for a CPU; false where they were not read.
func runningBelow(l *model.Listener, threads float64) bool {
	d := downstreamOf(l)
	return d != nil && d.Workers != nil && float64(d.Workers.Running) < threads
}
