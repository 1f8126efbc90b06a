package symptoms

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// SynQueueFull reports whether it was: a packet or two dropped there for want of memory are no stage
// that is full.
func (s *Symptoms) SynQueueFull() bool {
	n := s.DroppedFor(model.CauseSynBacklog)
	return n > 0 && float64(n) >= s.T.LossFraction*float64(s.Losses().DroppedPackets) && s.SynQueueMayBe()
}

// SynQueueMayBe means that a full SYN queue may be what drops SYNs before the accept queue: not where it answers them with
// cookies (tcp_conn_request).
func (s *Symptoms) SynQueueMayBe() bool {
	cookies, known := s.Sysctl["tcp_syncookies"]
	return !known || cookies == 0 || s.Delta["TCPReqQFullDrop"] > 0
}

// NoWayBack is how many SYNs were dropped as their SYN-ACKs cannot go to where they came from, and the counter that shows it: the
// kernel counts them among the listener's drops, and as packets without a route (OutNoRoutes, inet_csk_route_req) or by
// the ICMP message that ended the handshake (InDestUnreachs, tcp_req_err): a router's, or its own where nobody answers ARP
// for the client or the next hop (ipv4_link_failure). Others are counted there, too.
func (s *Symptoms) NoWayBack() (n uint64, counter string) {
	dropped := s.DroppedFor(model.CauseSynBacklog)
	if s.Delta["TCPReqQFullDrop"] > 0 || 2*dropped <= s.Losses().DroppedPackets {
		return 0, ""
	}
	for _, c := range []string{OutNoRoutes, InDestUnreachs} {
		if moved := s.Delta[c]; moved > 0 && 2*moved >= dropped {
			return min(moved, dropped), c
		}
	}
	return 0, ""
}

// DroppedBySocket is how many packets the listener's socket dropped that are none of the listener's drops: a filter of the socket or
// its cgroup does that, and counts nothing else (tcp_filter in tcp_v4_rcv). A few are resets and what is out of place.
func (s *Symptoms) DroppedBySocket() uint64 {
	n := s.Losses().SocketDrops
	if others, known := s.Delta["ListenDrops"]; !known || others > 0 || s.DroppedLately() || n < leftLeast {
		return 0
	}
	return n
}

// The counters of packets that cannot be sent.
const (
	OutNoRoutes    = "OutNoRoutes"
	InDestUnreachs = "InDestUnreachs"
)

// Clamped reports whether less of acceptCount is in force than was configured,
// and somaxconn is what can have done it. Where a source that could not be read
// may have configured less, only a queue of just net.core.somaxconn is taken for
// it.
func (s *Symptoms) Clamped() bool {
	q := s.Now.AcceptQueue
	n, ok := reading.AcceptCount(s.Now)
	if !ok || q == nil || n <= q.Limit {
		return false
	}
	if somax, known := s.Sysctl["somaxconn"]; known && somax == q.Limit {
		return true
	}
	return !s.Now.Connector.AcceptCount.Uncertain && reading.PlausibleSomaxconn(q.Limit)
}

// FilesFirst reports whether the file limit stops the server before
// maxConnections does, counting the files that are no connections of this
// listener's.
func (s *Symptoms) FilesFirst() bool {
	used, most, ok := reading.OpenFiles(s.Now)
	n, seen := reading.SlotsInUse(s.Now)
	return ok && seen && reading.ConnectionLimit(s.Now) == reading.LimitKnown &&
		most < s.Now.Connector.MaxConnections.Value+max(0, used-n)
}

// FullBefore means that packets were dropped at an accept queue that is not full any more, in front of a limit
// of connections that is known, so that only what was read at that moment could say whether it was reached.
func (s *Symptoms) FullBefore() bool {
	return s.Overflowed() > 0 && !reading.QueueFull(s.Now) && reading.ConnectionLimit(s.Now) == reading.LimitKnown
}

// Undercounted means that connections wait in front of slots that seem free, and those
// of clients that have reset could not be counted.
func (s *Symptoms) Undercounted() bool {
	c := s.Now.Connections
	return c != nil && c.Reset == nil && s.Both(reading.QueueWaits) && reading.ConnectionLimit(s.Now) == reading.LimitKnown && !s.ConnectionsFull
}

// SlotsWithoutThread reports whether at least a quarter of the connections are neither
// idle nor in service, where that is known. It may be more of them: each of the pool's
// threads is taken to have one, and the idle ones have none.
func (s *Symptoms) SlotsWithoutThread() bool {
	n, ok := reading.SlotsInUse(s.Now)
	c := s.Now.Connector
	return ok && c != nil && !c.TLS && !c.HTTP2 && 4*reading.Phase(s.Now, model.Unclassified) >= n && reading.Phase(s.Now, model.Unclassified) > 0
}

// NoMoreThreads means that a thread was refused, or the cgroup is hardly allowed another. The JVM's own
// (compilers, collectors) come and go.
func (s *Symptoms) NoMoreThreads() bool {
	p := s.Now.Process
	if p == nil {
		return false
	}
	refused := p.PIDsRefused != nil && *p.PIDsRefused > 0
	return refused || p.Threads != nil && p.PIDsLimit != nil && *p.PIDsLimit-*p.Threads <= max(2, *p.PIDsLimit/20)
}

// ForClients is how many of the used up threads wait for their own clients, where that is most of them: sends, to take
// a response, else, by the JVM's own account, to send the rest of a request.
func (s *Symptoms) ForClients() (n int, sends bool) {
	if !s.ThreadsFull {
		return 0, false
	}
	stacks := reading.StacksOf(s.Now)
	if g := stacks.BusyGroup(); g != nil && float64(g.Threads) >= mostOf*float64(stacks.Busy()) && (g.ReadsRequest() || g.SendsResponse()) {
		return g.Threads, g.SendsResponse()
	}
	sending := func(l *model.Listener) bool {
		return float64(l.SendingThreads()) >= max(1, mostOf*float64(s.busyOrAll()))
	}
	if s.Both(sending) {
		return s.Now.SendingThreads(), true
	}
	return 0, false
}

// Inside is how many of the used up threads wait for a lock, a pool or a timer, where
// that is most of them and they wait for no peer; 0 where that is not so, or not known.
func (s *Symptoms) Inside() int {
	d := reading.DownstreamOf(s.Now)
	if !s.ThreadsFull || s.Waits.Cause != model.CauseNone || s.Waits.Possible != model.CauseNone {
		return 0
	}
	if n, _ := s.ForClients(); n > 0 {
		return 0
	}
	if d != nil && d.Workers != nil {
		if n := d.Locked(s.Now); float64(n) >= mostOf*float64(s.busyOrAll()) {
			return n
		}
		return 0
	}
	// Without the threads' system calls the JVM's own word counts.
	if g := reading.StacksOf(s.Now).BusyGroup(); g != nil && reading.StandStill(g) && float64(g.Threads) >= mostOf*float64(reading.StacksOf(s.Now).Busy()) {
		return g.Threads
	}
	return 0
}

// InCalls is how many of the used up threads are in a call on a file, a pipe or a socket that is
// not TCP's, where that is most of them; else 0.
func (s *Symptoms) InCalls() int {
	d := reading.DownstreamOf(s.Now)
	if !s.ThreadsFull || d == nil || d.Workers == nil {
		return 0
	}
	if n := d.Workers.InCalls(); float64(n) >= mostOf*float64(s.busyOrAll()) {
		return n
	}
	return 0
}

// ThreadsMayBeVain reports it: of threads that wait for a peer, perhaps, or inside the process,
// more would not help with a lock, nor with a backend that is slow, or cannot be
// reached, or whose pool's connections are leaked. A timer is told by its timeout, in
// a process that has no backend.
func (s *Symptoms) ThreadsMayBeVain() bool {
	if s.InCalls() > 0 || reading.Gate(s.Now) != nil || s.Waits.Possible != model.CauseNone {
		return true
	}
	if s.Inside() == 0 {
		return false
	}
	d := reading.DownstreamOf(s.Now)
	return d == nil || len(d.Peers)+len(d.Unconnected) > 0 || d.Workers == nil || 2*d.Workers.Timed < d.Workers.Parked
}
