package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

// DropCause names the limit behind packets that a listener dropped between
// two looks, one of backlog.DropCauses. before may be nil. It answers
// CauseAcceptQueue where it is not known for certain that maxConnections is not
// reached, and nothing else explains the full queue.
//
// ns is how far the namespace's counters moved. Attributed.SynQueue says the
// same of one listener's packets and is the better evidence where it is had.
func DropCause(before, now *backlog.Listener, elapsed time.Duration, ns NamespaceDelta, t Thresholds) backlog.Cause {
	if ns.ListenDrops > 0 && 2*ns.ListenOverflows < ns.ListenDrops {
		return backlog.CauseSynBacklog
	}
	return pair{now: now, before: before, elapsed: elapsed, t: t}.queueCause()
}

// queueCause names what keeps the accept queue from being emptied. A limit
// counts when either look shows it: the drops lie between the two.
func (p pair) queueCause() backlog.Cause {
	if p.either(stopped) {
		return backlog.CauseJVMPause
	}
	if p.either(p.atConnectionLimit) {
		return p.connectionsCause()
	}
	if p.either(p.filesFull) {
		return backlog.CauseOpenFiles
	}
	if c := p.stalled(); c != backlog.CauseNone {
		return c
	}
	if p.now == nil || connectionLimit(p.now) == limitUnknown || uncertainLimit(p.now) || partial(p.now) {
		return backlog.CauseAcceptQueue
	}
	return backlog.CauseSlowAccept
}

// connectionsCause tells why the connections are all taken.
func (p pair) connectionsCause() backlog.Cause {
	if c := p.cpuOverrides(); c != backlog.CauseNone {
		return c
	}
	if p.mostlyIdle() {
		return backlog.CauseKeepAliveIdle
	}
	return backlog.CauseMaxConnections
}

// stalled tells whether the process could not run between the looks. It is
// only evidence beside an accept queue that fills.
func (p pair) stalled() backlog.Cause {
	switch {
	case p.stoodStill():
		return backlog.CauseJVMPause
	case p.throttling().share() >= p.t.ThrottledShare:
		return backlog.CauseCPUThrottled
	case p.share(runDelay) >= p.t.RunDelay:
		return backlog.CauseCPUSaturated
	}
	return backlog.CauseNone
}

// stoodStill tells whether the JVM stood at a safepoint for long enough.
func (p pair) stoodStill() bool {
	pause := p.pause()
	return pause >= p.t.PauseMin && pause.Seconds() >= p.t.PauseShare*p.elapsed.Seconds()
}

// pause is the time of the safepoints that ended between the looks and of the
// one that is under way. They may have begun before the first look: a long one
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
func (p pair) cpuOverrides() backlog.Cause {
	if p.throttling().share() >= p.t.CPUOverrides {
		return backlog.CauseCPUThrottled
	}
	need := 2 * p.t.RunDelay // virtual threads: a few carriers, as many as CPUs
	if !virtualThreads(p.now) {
		busy, ok := busyThreads(p.now)
		if !ok {
			return backlog.CauseNone
		}
		need = max(need, p.t.CPUOverrides*float64(busy))
	}
	if p.share(runDelay) >= need {
		return backlog.CauseCPUSaturated
	}
	return backlog.CauseNone
}
