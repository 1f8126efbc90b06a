package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// throttledMost: the CPU limit withholds so much that it is the cause whatever else is
// full.
func (p pair) throttledMost() bool { return p.throttling().share() >= p.t.CPUOverrides }

// stoodStillMost: so much of the time that whatever else is full fills behind it.
func (p pair) stoodStillMost() bool {
	return p.stoodStill() && p.pause().Seconds() >= p.t.PauseMost*p.between().Seconds()
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

// shortOfCPU names the CPU although connections or threads are exhausted:
// with that little of it the handlers cannot finish, and more threads would
// only wait for it too. A thread that sleeps or waits for a database waits for
// no CPU.
func (p pair) shortOfCPU() bool {
	need := 2 * p.t.RunDelay // virtual threads: a few carriers, as many as CPUs
	if !virtualThreads(p.now) {
		busy, ok := busyThreads(p.now)
		if !ok {
			return false
		}
		need = max(need, p.t.CPUOverrides*float64(busy))
		if !p.stoodStill() && runningBelow(p.now, p.t.CPUOverrides*float64(busy)) {
			return false // its compilers and collectors wait, not the handlers
		}
	}
	if p.stoodStill() { // it waits for those that have to get to the safepoint first
		need = 2 * p.t.RunDelay
	}
	return p.share(runDelay) >= need
}

// runningBelow reports whether fewer worker threads than that were seen to run or to
// wait for a CPU; false where they were not read.
func runningBelow(l *model.Listener, threads float64) bool {
	d := downstreamOf(l)
	return d != nil && d.Workers != nil && float64(d.Workers.Running) < threads
}
