package reading

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// ThrottledMuch means that the CPU limit withholds so much that what a thread has not done may be for want of it.
func (p Pair) ThrottledMuch() bool { return p.Throttling().Fraction() >= p.T.NotRunningFraction }

// ThrottledMost means that the CPU limit withholds so much that it is the cause whatever else is
// full.
func (p Pair) ThrottledMost() bool { return p.Throttling().Fraction() >= p.T.CPUOverrides }

// PausedMost reports whether it was for so much of the time that whatever else is full
// fills behind it.
func (p Pair) PausedMost() bool {
	return p.Paused() && p.Pause().Seconds() >= p.T.PauseMost*p.Between().Seconds()
}

// PausedOtherwise means that the pauses which ended between the snapshots were for something else than collections, for the
// greater part: what a safepoint that is under way is for is not known.
func (p Pair) PausedOtherwise() bool {
	pause, known := p.total(safepointTime)
	collected, counted := p.total(func(pr *model.Process) *time.Duration { return pr.GCTime })
	return known && counted && p.Now.Process.InSafepoint == nil && pause > 0 && collected < pause/2
}

// HeapFull is how full the old generation is, where the collector finds no more room in it.
func HeapFull(l *model.Listener) (share float64, ok bool) {
	if l == nil || l.Process == nil {
		return 0, false
	}
	p := l.Process
	if p.OldUsed == nil || p.OldMax == nil || *p.OldMax <= 0 {
		return 0, false
	}
	share = float64(*p.OldUsed) / float64(*p.OldMax)
	return share, share >= heapFull
}

// heapFull is from when that is said.
const heapFull = 0.85

// MemoryFull means that the process has nearly all the memory that its cgroup may have, which others there share.
func MemoryFull(l *model.Listener) (used, limit uint64, ok bool) {
	if l == nil || l.Process == nil || l.Process.MemoryUsed == nil || l.Process.MemoryLimit == nil {
		return 0, 0, false
	}
	used, limit = *l.Process.MemoryUsed, *l.Process.MemoryLimit
	return used, limit, float64(used) >= memoryFull*float64(limit)
}

// memoryFull is from when that is said: page tables, stacks of the kernel and sockets count there, too.
const memoryFull = 0.9

// Paused reports whether the JVM was stopped at a safepoint for long enough.
func (p Pair) Paused() bool {
	pause := p.Pause()
	return pause > 0 && pause >= p.T.PauseMin && pause.Seconds() >= p.T.PauseFraction*p.Between().Seconds()
}

// Pause is the time of the safepoints that ended between the snapshots and of the
// one that is under way. They may have begun before the first snapshot: a long one
// outlasts several.
func (p Pair) Pause() time.Duration {
	pause, _ := p.total(safepointTime)
	if p.Now != nil && p.Now.Process != nil && p.Now.Process.InSafepoint != nil {
		pause += *p.Now.Process.InSafepoint
	}
	return pause
}

// ShortOfCPU names the CPU although connections or threads are exhausted:
// with that little of it the handlers cannot finish, and more threads would
// only wait for it too. A thread that sleeps or waits for a database waits for
// no CPU.
func (p Pair) ShortOfCPU() bool {
	need := 2 * p.T.RunDelay // virtual threads: a few carriers, as many as CPUs
	if !VirtualThreads(p.Now) {
		busy, ok := BusyThreads(p.Now)
		if !ok {
			return false
		}
		if p.ThreadsExhausted(p.Now) && p.Now.Connector.PoolThreads != nil {
			busy = max(busy, *p.Now.Connector.PoolThreads) // one that reads a body may look as if its request waited
		}
		need = max(need, p.T.CPUOverrides*float64(busy))
		if !p.Paused() && runningBelow(p.Now, p.T.CPUOverrides*float64(busy)) {
			return false // its compilers and collectors wait, not the handlers
		}
	}
	if p.Paused() && !p.collects() { // it waits for those that have to get to the safepoint first
		need = 2 * p.T.RunDelay
	}
	return p.Fraction(RunDelay) >= need
}

// collects means that the pauses were for collections, for the greater part, and the process ran for longer than it waited for
// a CPU: who waited were its collector's threads, and all the others at once after each pause.
func (p Pair) collects() bool {
	pause, _ := p.total(safepointTime)
	collected, counted := p.total(func(pr *model.Process) *time.Duration { return pr.GCTime })
	used, known := p.total(CPUUsed)
	waited, _ := p.total(RunDelay)
	return counted && known && pause > 0 && collected >= pause/2 && used > waited
}

// BusyElsewhere reports whether several threads have a request, and most of them do not wait for a CPU: what
// waits for one are the JVM's own threads, as compilers on a server that is not warm.
func (p Pair) BusyElsewhere() bool {
	busy, ok := BusyThreads(p.Now)
	return ok && busy >= busyLeast && float64(busy) > 2*p.Fraction(RunDelay) && !p.ShortOfCPU()
}

// busyLeast is of how many threads that is said.
const busyLeast = 4

// runningBelow reports whether fewer worker threads than that were seen to run or to
// wait for a CPU; false where they were not read.
func runningBelow(l *model.Listener, threads float64) bool {
	d := DownstreamOf(l)
	return d != nil && d.Workers != nil && float64(d.Workers.Running) < threads
}

// AcceptorRuns reports whether the acceptor was seen not to wait for a CPU, and the handlers' threads do not for most of
// what they do.
func (p Pair) AcceptorRuns() bool {
	if p.Now == nil || p.ShortOfCPU() {
		return false
	}
	switch p.Now.Acceptor {
	case model.AcceptorAtLimit, model.AcceptorAccepts, model.AcceptorPauses:
		return true
	}
	return false
}

// LimitInDoubt reports whether all connections may be taken, for all that is known, and no handler is known to wait for a CPU:
// their limit or their number is not certain, and the acceptor, which would show it, was not seen.
func (p Pair) LimitInDoubt() bool {
	if p.Now == nil || p.Now.Acceptor != "" || ConnectionLimit(p.Now) != LimitUnknown && !UncertainLimit(p.Now) && !Inexact(p.Now) {
		return false
	}
	busy, _ := BusyThreads(p.Now)
	return busy == 0 || !p.ShortOfCPU()
}
