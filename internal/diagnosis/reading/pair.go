package reading

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Pair is two snapshots of one listener, or one (Before is nil then).
type Pair struct {
	Now, Before *model.Listener
	First       bool // Before will be had, but is not yet
	Elapsed     time.Duration
	T           Thresholds
}

// Both reports whether every snapshot shows it: a stage that is full in one snapshot
// only is no state yet. The only snapshot there will be is judged from one.
func (p Pair) Both(shows func(*model.Listener) bool) bool {
	return shows(p.Now) && !p.First && (p.Before == nil || shows(p.Before))
}

// Either reports whether one of the snapshots shows it.
func (p Pair) Either(shows func(*model.Listener) bool) bool {
	return shows(p.Now) || p.Before != nil && shows(p.Before)
}

// total is how much a running total of time grew between the snapshots.
func (p Pair) total(of func(*model.Process) *time.Duration) (time.Duration, bool) {
	return grown(p, of)
}

// grown is how much a running total of the process grew between the snapshots.
func grown[N uint64 | time.Duration](p Pair, of func(*model.Process) *N) (N, bool) {
	if p.Now == nil || p.Before == nil || !sameProcess(p.Now.Process, p.Before.Process) {
		return 0, false
	}
	a, b := of(p.Now.Process), of(p.Before.Process)
	if a == nil || b == nil || *a < *b {
		return 0, false
	}
	return *a - *b, true
}

// Fraction is the same per time: 1 is always, for run delay one thread on average.
func (p Pair) Fraction(of func(*model.Process) *time.Duration) float64 {
	d, ok := p.total(of)
	between := p.Between()
	if !ok || between <= 0 {
		return 0
	}
	return d.Seconds() / between.Seconds()
}

// Between is the time between the two readings of the process, which have their
// own times where they were not made with the rest.
func (p Pair) Between() time.Duration {
	if p.Now == nil || p.Before == nil || p.Now.Process == nil || p.Before.Process == nil ||
		p.Now.Process.At.IsZero() || p.Before.Process.At.IsZero() {
		return p.Elapsed
	}
	return p.Now.Process.At.Sub(p.Before.Process.At)
}

func safepointTime(p *model.Process) *time.Duration { return p.SafepointTime }

func cpuThrottled(p *model.Process) *time.Duration { return p.CPUThrottled }

// CPUUsed is the CPU time that the process, or its cgroup, has had.
func CPUUsed(p *model.Process) *time.Duration { return p.CPUUsed }

// RunDelay is for how long the threads of a process have waited for a CPU.
func RunDelay(p *model.Process) *time.Duration { return p.RunDelay }

// AtConnectionLimit reports whether Tomcat holds all the connections it may.
func (p Pair) AtConnectionLimit(l *model.Listener) bool {
	n, ok := SlotsInUse(l)
	if !ok || ConnectionLimit(l) != LimitKnown {
		return false
	}
	return n >= model.ConnectionsReached(l.Connector.MaxConnections.Value)
}

// AwaitsWorkers means that connections were taken out of the accept queue only as workers became free (NIO2): in both
// readings all were busy while clients waited, and hardly more connections were held than before.
func (p Pair) AwaitsWorkers() bool {
	if p.Before == nil || !AcceptsWithWorkers(p.Now) || !p.Both(func(l *model.Listener) bool { return AllThreadsBusy(l) && QueueWaits(l) }) {
		return false
	}
	slots, ok := SlotsInUse(p.Now)
	then, known := SlotsInUse(p.Before)
	return ok && known && slots <= then+max(1, then/10)
}

// MostlyIdle reports whether most accepted connections are idle in the snapshots
// that show the limit reached. Unclassified ones are never called idle.
func (p Pair) MostlyIdle() bool {
	idle := func(l *model.Listener) bool {
		return model.MostlyIdle(l.Connections.Unused(), l.Connections.SlotsInUse())
	}
	for _, l := range []*model.Listener{p.Now, p.Before} {
		if l != nil && p.AtConnectionLimit(l) && !idle(l) {
			return false
		}
	}
	return true
}

// ThreadsExhausted reports whether requests wait because every thread has one.
// A pool at its maximum alone proves nothing (threads outlive a burst by a
// minute), nor does a waiting request alone (it may be picked up in a
// millisecond): so either the threads are seen busy, or many requests wait.
func (p Pair) ThreadsExhausted(l *model.Listener) bool {
	most, ok := MaxThreads(l)
	if !ok {
		return false
	}
	if atMax, known := poolAtMax(l); known && !atMax {
		return false
	}
	waiting := WaitingForThread(l)
	if slots, known := SlotsInUse(l); known && l.Connector.Shared == nil && float64(slots) < p.T.ThreadsBusy*float64(most) {
		waiting = WaitingRequests(l) // not all threads have a request, so who is not accepted (NIO2) waits for something else
	}
	if waiting == 0 {
		return false
	}
	busy, seen := BusyThreads(l)
	if seen && float64(busy) >= p.T.ThreadsBusy*float64(most) {
		return true
	}
	_, counted := poolAtMax(l)
	between := seen && busy > 0 && busy == most-1 // one thread is on its way from one request to the next: a quarter of four
	return (counted || between) && float64(waiting) >= max(2, p.T.ThreadsBacklog*float64(most))
}

// ExecutorNearLimit reports whether the executor's bounded queue is full or nearly
// so: a request that is answered leaves a place for a moment.
func (p Pair) ExecutorNearLimit(l *model.Listener) bool {
	n, ok := BoundedQueue(l)
	if !ok {
		return false
	}
	most, _ := MaxThreads(l)
	busy, seen := BusyThreads(l)
	if !p.ThreadsExhausted(l) && (!seen || most == 0 || busy < most) {
		return false
	}
	return float64(ExecutorWaiting(l)) >= p.T.High*float64(n)
}

// FilesFull reports whether the process has no descriptor left for accept().
func (p Pair) FilesFull(l *model.Listener) bool {
	used, most, ok := OpenFiles(l)
	return ok && model.FilesReached(used, most)
}

// NothingAccepted is for how long nobody has been taken out of the accept queue at least, 0
// where somebody was or may have been.
func (p Pair) NothingAccepted() time.Duration {
	return p.noAcceptFor(standstillLeast)
}

// OldestStands means that the first in the accept queue stayed the first between two readings, however
// close they are: nothing shows that anybody is accepted.
func (p Pair) OldestStands() bool { return p.noAcceptFor(standsLeast) > 0 }

// noAcceptFor is for how long the first in the accept queue has been it; 0 where that is less, or nobody who is no probe
// has waited for that long.
func (p Pair) noAcceptFor(least time.Duration) time.Duration {
	if p.Now == nil || !QueueWaits(p.Now) || p.Now.AcceptQueue.NoAcceptFor == nil || *p.Now.AcceptQueue.NoAcceptFor < least {
		return 0
	}
	if probes(p.Now) > 0 && *p.Now.AcceptQueue.OldestClient < least {
		return 0
	}
	return *p.Now.AcceptQueue.NoAcceptFor
}

const (
	// standstillLeast is how long nobody is accepted before it is said.
	standstillLeast = 500 * time.Millisecond
	// standsLeast is how far apart two readings are that show it of themselves.
	standsLeast = 100 * time.Millisecond
)

// Learned is the snapshot before with the settings that are known by now, of the same
// process: they were in force then, too. A busy machine takes longer to read them than to
// count connections, and the limit that was reached all the time would else seem to have
// been reached only now. What the connector was doing stays that snapshot's.
func Learned(before, now *model.Listener) *model.Listener {
	if before == nil || !sameProcess(before.Process, now.Process) || now.Connector == nil || now.Connector.Shared != nil {
		return before
	}
	was := model.Connector{}
	if before.Connector != nil {
		was = *before.Connector
	}
	if was.MaxThreads != nil || was.MaxConnections != nil || was.Shared != nil {
		return before
	}
	l, c := *before, *now.Connector
	c.PoolThreads, c.BusyThreads, c.CurrentConnections = was.PoolThreads, was.BusyThreads, was.CurrentConnections
	l.Connector = &c
	return &l
}

func sameProcess(a, b *model.Process) bool {
	return a != nil && b != nil && a.PID == b.PID && a.StartTime == b.StartTime
}
