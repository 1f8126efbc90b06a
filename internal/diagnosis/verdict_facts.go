package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// synQueueFull: a packet or two dropped there for want of memory are no stage
// that is full.
func (j *judge) synQueueFull() bool {
	n := j.droppedFor(model.CauseSynBacklog)
	return n > 0 && float64(n) >= j.T.LossShare*float64(j.losses().DroppedPackets)
}

// clamped reports whether less of acceptCount is in force than was configured,
// and somaxconn is what can have done it. Where a source that could not be read
// may have configured less, only a queue of just net.core.somaxconn is taken for
// it.
func (j *judge) clamped() bool {
	q := j.Now.AcceptQueue
	n, ok := reading.AcceptCount(j.Now)
	if !ok || q == nil || n <= q.Limit {
		return false
	}
	if somax, known := j.Sysctl["somaxconn"]; known && somax == q.Limit {
		return true
	}
	return !j.Now.Connector.AcceptCount.Uncertain && reading.PlausibleSomaxconn(q.Limit)
}

// filesFirst reports whether the file limit stops the server before
// maxConnections does, counting the files that are no connections of this
// listener's.
func (j *judge) filesFirst() bool {
	used, most, ok := reading.OpenFiles(j.Now)
	n, seen := reading.Held(j.Now)
	return ok && seen && reading.ConnectionLimit(j.Now) == reading.LimitKnown &&
		most < j.Now.Connector.MaxConnections.Value+max(0, used-n)
}

// undercounted: connections wait in front of slots that seem free, and those
// of clients that have reset could not be counted.
func (j *judge) undercounted() bool {
	c := j.Now.Connections
	return c != nil && c.Reset == nil && j.Both(reading.QueueWaits) && reading.ConnectionLimit(j.Now) == reading.LimitKnown && !j.connectionsFull
}

// slotsWithoutThread reports whether at least a quarter of the connections are neither
// idle nor in service, where that is known. It may be more of them: each of the pool's
// threads is taken to have one, and the idle ones have none.
func (j *judge) slotsWithoutThread() bool {
	n, ok := reading.Held(j.Now)
	c := j.Now.Connector
	return ok && c != nil && !c.TLS && !c.HTTP2 && 4*reading.Phase(j.Now, model.Unclassified) >= n && reading.Phase(j.Now, model.Unclassified) > 0
}

// noMoreThreads: one was refused, or the cgroup is hardly allowed another. The JVM's own
// (compilers, collectors) come and go.
func (j *judge) noMoreThreads() bool {
	p := j.Now.Process
	if p == nil {
		return false
	}
	refused := p.PIDsRefused != nil && *p.PIDsRefused > 0
	return refused || p.Threads != nil && p.PIDsLimit != nil && *p.PIDsLimit-*p.Threads <= max(2, *p.PIDsLimit/20)
}

// inside is how many of the used up threads wait for a lock, a pool or a timer, where
// that is most of them and they wait for no peer; 0 where that is not so, or not known.
func (j *judge) inside() int {
	d := reading.DownstreamOf(j.Now)
	if !j.threadsFull || j.waits.cause != model.CauseNone || j.waits.possible != model.CauseNone {
		return 0
	}
	if d != nil && d.Workers != nil {
		if n := d.Locked(j.Now); float64(n) >= mostOf*float64(j.busyOrAll()) {
			return n
		}
		return 0
	}
	// Without the threads' system calls the JVM's own word counts.
	if g := reading.StacksOf(j.Now).BusyGroup(); g != nil && reading.StandStill(g) && float64(g.Threads) >= mostOf*float64(reading.StacksOf(j.Now).Busy()) {
		return g.Threads
	}
	return 0
}

// inFiles is how many of the used up threads are in open(2) or write(2) on what is no socket,
// where that is most of them, and which call most of these are in.
func (j *judge) inFiles() (n int, call string) {
	d := reading.DownstreamOf(j.Now)
	if !j.threadsFull || d == nil || d.Workers == nil {
		return 0, ""
	}
	n, call = d.Workers.Opening+d.Workers.Writing, "open(2)"
	if d.Workers.Writing > d.Workers.Opening {
		call = "write(2)"
	}
	if float64(n) < mostOf*float64(j.busyOrAll()) {
		return 0, ""
	}
	return n, call
}

// threadsMayBeVain: of threads that wait for a peer, perhaps, or inside the process,
// more would not help with a lock, nor with a backend that is slow, or cannot be
// reached, or whose pool's connections are leaked. A timer is told by its timeout, in
// a process that has no backend.
func (j *judge) threadsMayBeVain() bool {
	if n, _ := j.inFiles(); n > 0 || reading.Gate(j.Now) != nil || j.waits.possible != model.CauseNone {
		return true
	}
	if j.inside() == 0 {
		return false
	}
	d := reading.DownstreamOf(j.Now)
	return d == nil || len(d.Peers)+len(d.Unconnected) > 0 || d.Workers == nil || 2*d.Workers.Timed < d.Workers.Parked
}
