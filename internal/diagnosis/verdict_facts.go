package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

// gate is a configured valve that lets fewer requests through than there are threads, nil
// without one: the other threads wait in it.
func gate(l *model.Listener) *model.Setting[int] {
	if l == nil || l.Connector == nil || l.Connector.Gate == nil {
		return nil
	}
	if most, known := maxThreads(l); !known || l.Connector.Gate.Value >= most {
		return nil
	}
	return l.Connector.Gate
}

// allThreadsBusy is a full stage even with no request waiting behind it: where
// threads are as many as connections, none can.
func allThreadsBusy(l *model.Listener) bool {
	most, ok := maxThreads(l)
	busy, seen := busyThreads(l)
	return ok && seen && busy >= most
}

// synQueueFull: a packet or two dropped there for want of memory are no stage
// that is full.
func (j *judge) synQueueFull() bool {
	n := j.droppedFor(model.CauseSynBacklog)
	return n > 0 && float64(n) >= j.t.LossShare*float64(j.losses().DroppedPackets)
}

// clamped reports whether less of acceptCount is in force than was configured,
// and somaxconn is what can have done it. Where a source that could not be read
// may have configured less, only a queue of just net.core.somaxconn is taken for
// it.
func (j *judge) clamped() bool {
	q := j.Now.AcceptQueue
	n, ok := acceptCount(j.Now)
	if !ok || q == nil || n <= q.Limit {
		return false
	}
	if somax, known := j.Sysctl["somaxconn"]; known && somax == q.Limit {
		return true
	}
	return !j.Now.Connector.AcceptCount.Uncertain && plausibleSomaxconn(q.Limit)
}

// plausibleSomaxconn: net.core.somaxconn may have been another one when the
// listener was opened. It is 128 before Linux 5.4 and 4096 since, and people set
// it to powers of two, to 65535, or to thousands; a queue of 9 is none of these.
func plausibleSomaxconn(n int) bool {
	return n == 65535 || n >= 128 && n&(n-1) == 0 || n >= 1000 && n%1000 == 0
}

// acceptCount is the configured one. Values ≤ 0 are ignored by Tomcat, and one
// read from the kernel is the limit in force itself.
func acceptCount(l *model.Listener) (int, bool) {
	if l == nil || l.Connector == nil || l.Connector.AcceptCount == nil {
		return 0, false
	}
	s := l.Connector.AcceptCount
	return s.Value, s.Value > 0 && s.Kind != model.SourceKernel
}

// filesFirst reports whether the file limit stops the server before
// maxConnections does, counting the files that are no connections of this
// listener's.
func (j *judge) filesFirst() bool {
	used, most, ok := openFiles(j.Now)
	n, seen := held(j.Now)
	return ok && seen && connectionLimit(j.Now) == limitKnown &&
		most < j.Now.Connector.MaxConnections.Value+max(0, used-n)
}

// undercounted: connections wait in front of slots that seem free, and those
// of clients that have reset could not be counted.
func (j *judge) undercounted() bool {
	c := j.Now.Connections
	return c != nil && c.Reset == nil && j.both(queueWaits) && connectionLimit(j.Now) == limitKnown && !j.connectionsFull
}

// slotsWithoutThread reports whether at least a quarter of the connections are neither
// idle nor in service, where that is known. It may be more of them: each of the pool's
// threads is taken to have one, and the idle ones have none.
func (j *judge) slotsWithoutThread() bool {
	n, ok := held(j.Now)
	c := j.Now.Connector
	return ok && c != nil && !c.TLS && !c.HTTP2 && 4*phase(j.Now, model.Unclassified) >= n && phase(j.Now, model.Unclassified) > 0
}

// mostlyOutlived: most of the connections that cannot be classified were answered, and
// are quiet for longer than keepAliveTimeout allows.
func mostlyOutlived(l *model.Listener) bool {
	return l.Connections != nil && 2*l.Connections.Outlived > phase(l, model.Unclassified)
}

// mostlySilent: most idle connections are such as have never had a request.
func mostlySilent(l *model.Listener) bool { return 2*silent(l) > phase(l, model.Idle) }

// mostlyRecent: most idle connections were used within the last two seconds, so that on
// average they are used every four or more often: no timeout of some seconds ends them.
func mostlyRecent(l *model.Listener) bool {
	return l.Connections != nil && 2*l.Connections.Recent > phase(l, model.Idle)
}

func silent(l *model.Listener) int {
	if l.Connections == nil {
		return 0
	}
	return l.Connections.Silent
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
	d := downstreamOf(j.Now)
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
	if g := stacksOf(j.Now).BusyGroup(); g != nil && standStill(g) && float64(g.Threads) >= mostOf*float64(stacksOf(j.Now).Busy()) {
		return g.Threads
	}
	return 0
}

// inFiles is how many of the used up threads are in open(2) or write(2) on what is no socket,
// where that is most of them, and which call most of these are in.
func (j *judge) inFiles() (n int, call string) {
	d := downstreamOf(j.Now)
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
	if n, _ := j.inFiles(); n > 0 || gate(j.Now) != nil || j.waits.possible != model.CauseNone {
		return true
	}
	if j.inside() == 0 {
		return false
	}
	d := downstreamOf(j.Now)
	return d == nil || len(d.Peers)+len(d.Unconnected) > 0 || d.Workers == nil || 2*d.Workers.Timed < d.Workers.Parked
}
