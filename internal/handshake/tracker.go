package handshake

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/recall"
	"github.com/tcpdiag/tcpdiag/internal/handshake/room"
)

// Options of a Tracker. The zero value is that of an ordinary system.
type Options struct {
	// MaxOpen is how many attempts are followed at a time, 100,000 unless set;
	// what comes beyond is counted by a sketch (Endpoint.Untracked).
	MaxOpen int
	// SynAckRetries is net.ipv4.tcp_synack_retries of the namespace, 5 unless set;
	// negative for none.
	SynAckRetries int
	// Socket says what the namespace has for these two ends. It is asked where packets
	// leave open what became of a client. The client's came by a device with this index.
	Socket func(server, client netip.AddrPort, device uint32) kernel.Found
	// Shared is that of all Trackers of an agent; nil: there is one.
	Shared *room.Shared
	// Judged is called with what becomes of each client, for tests and measurements. It may
	// not call the Tracker.
	Judged func(outcome.Judged)
	// Clock is the present time, where segments are read late; nil: it is the latest that the Tracker was given.
	Clock func() time.Duration
}

const (
	defaultMaxOpen = 100_000
	defaultRetries = 5 // TCP_SYNACK_RETRIES
)

// Tracker follows the attempts to connect to a set of ports. Its only clock are
// the times it is given: durations since some moment, which never fall by more
// than packets overtake each other. It is not safe for concurrent use.
type Tracker struct {
	asked   func(server, client netip.AddrPort, device uint32) kernel.Found
	judged  func(outcome.Judged)
	asking  []int32              // attempts about which the kernel is to be asked
	present time.Duration        // when it was last asked
	clock   func() time.Duration // Options.Clock, or the latest time that is known
	again   bool                 // the client of the attempt uses its port again: what the kernel has may be the next one's
	quick   int                  // questions about those that end, since the last Ask
	scope   packet.Scope
	now     time.Duration

	table *table
	// proved are the clients that have ended their connection, until the counters have been
	// read that show whether they had one: if one of them was moved by a dropped ACK, they
	// come back. They leave the table at once, as they are most of those that are followed, and
	// a table of few stays in the processor's cache.
	proved    recall.Queue[attempt]
	ended     recall.Ended
	endpoints endpoints
	nearest   recall.Nearest

	shared *room.Shared
	share  *room.Share

	proofs   proofs
	wide     bool
	narrowed time.Duration // when wide was last ended
	widened  time.Duration // when it last began
	foreign  uint64
	unread   kernel.Unread
	resetAt  time.Duration // when the server last sent a RST to an open attempt
	latest   int32         // attempt whose SYN-ACK is not read, or none
}

// NewTracker makes a tracker that follows no port yet.
func NewTracker(o Options) *Tracker {
	t := &Tracker{
		proofs: proofs{retries: uint8(min(max(cmp.Or(o.SynAckRetries, defaultRetries), 0), 255))},
		asked:  o.Socket,
		judged: o.Judged,
		clock:  o.Clock,
		latest: none,
	}
	if t.clock == nil {
		t.clock = func() time.Duration { return max(t.now, t.present) }
	}
	if t.shared = o.Shared; t.shared == nil {
		t.shared = room.Alone()
	}
	t.share = t.shared.Join()
	t.proved, t.ended.Share = recall.Queue[attempt]{Share: t.share, Most: mostProved}, t.share
	t.table = newTable(cmp.Or(o.MaxOpen, defaultMaxOpen), &t.endpoints.Holdings, t.share)
	return t
}

// SetPorts changes the ports that are followed. What is open on others is
// forgotten without an outcome; their totals are in the next report, the last one.
func (t *Tracker) SetPorts(ports []uint16) {
	t.scope.SetPorts(ports)
	t.proofs.drops.Retain(t.scope.Follows)
	t.forgetOpen()
}

// SetListened says on which of the addresses something listens: the clients of each are counted by themselves. Those of one on which
// nothing does any more may be forgotten as those of a port are.
func (t *Tracker) SetListened(at []netip.AddrPort) {
	if t.endpoints.SetListened(at) {
		t.forgetOpen()
	}
}

func (t *Tracker) forgetOpen() {
	forgotten := func(a *attempt) bool {
		e := t.endpoints.of(a)
		if t.scope.Follows(e.port) && !t.endpoints.Leaves(a.endpoint) {
			return false
		}
		e.open[a.at]--
		return true
	}
	t.table.drop(forgotten)
	t.proved.Drop(forgotten)
}

// SetLocal says which addresses are the namespace's own: packets that it
// forwards to others are no clients of its. Those of the loopback always are its
// own.
func (t *Tracker) SetLocal(addrs []netip.Prefix) { t.scope.SetLocal(addrs) }

// Open is how many attempts are followed at the moment.
func (t *Tracker) Open() int { return t.table.open }

// Foreign counts SYNs to addresses that SetLocal did not name.
func (t *Tracker) Foreign() uint64 { return t.foreign }

// Stalling reports whether the kernel repeats a SYN-ACK to an open attempt, or would
// not repeat one, or the client repeats a SYN that was answered.
func (t *Tracker) Stalling() bool {
	return t.proofs.retries == 0 || slices.ContainsFunc(t.endpoints.list, func(e *endpoint) bool { return e.open[stalling]+e.open[stageUnreached] > 0 })
}

// Cookies notes that the kernel sent SYN cookies between two moments: a SYN-ACK
// of that time that is not repeated proves nothing.
func (t *Tracker) Cookies(from, to time.Duration) { t.proofs.cookies.Mark(from, to) }

// Drops notes that a listener of a port dropped SYNs or ACKs between two moments; 0 is any
// port.
func (t *Tracker) Drops(port uint16, from, to time.Duration) { t.proofs.drops.Mark(port, from, to) }

// Widen says whether from now on all segments of the clients are observed.
func (t *Tracker) Widen(wide bool) {
	switch {
	case t.wide && !wide:
		t.narrowed = t.now
	case wide && !t.wide:
		t.widened = t.clock() // what is read now may have come before
	}
	t.wide = wide
}

// Advance judges the attempts whose time is over: every segment observed later
// must be of at or after.
func (t *Tracker) Advance(at time.Duration) {
	t.now = max(t.now, at)
	t.Ask(at)
	t.probe()
	if t.unread.Due && at >= max(t.unread.To, t.unread.Until) {
		t.unread.Due = false
		t.settle(at)
	}
	t.proved.Due(min(at, t.unread.CalmTo), func(a *attempt) { t.proven(at, a) })
	t.table.due(at, func(a *attempt) (deadline time.Duration) { return t.end(at, a) })
	t.ended.Advance(at)
	t.comeDown(at)
}

// end counts an attempt whose time is over, or returns when it will be.
func (t *Tracker) end(at time.Duration, a *attempt) (deadline time.Duration) {
	if deadline := a.undropped(); t.unread.Due && deadline > at {
		return deadline
	}
	if a.unread() {
		switch deadline = t.resolve(at, a, t.ask(a).Socket, t.unread.Moved.Killed > 0); {
		case deadline == never:
			t.lose(a)
			return 0
		case deadline > at:
			return deadline
		}
	}
	if a.has(counted) {
		return t.after(at, a)
	}
	v := t.decide(at, a)
	if v.again > at {
		t.restage(a)
		return v.again
	}
	if !t.count(at, a, v.outcome) {
		t.answer(a)
		t.drop(a)
		return 0
	}
	t.restage(a)
	return t.after(at, a)
}

// after is when to judge an attempt again whose outcome is counted; 0 for never.
func (t *Tracker) after(at time.Duration, a *attempt) (deadline time.Duration) {
	again, done := t.follow(at, a)
	if done || t.endpoints.of(a).open[stageInside] > t.table.limit/2 {
		t.drop(a)
		return 0
	}
	return again
}

// Report is the state of all ports that have had a client, sorted by port and
// address. Those that are no longer followed are in it once.
func (t *Tracker) Report() []outcome.Endpoint {
	out := make([]outcome.Endpoint, 0, t.endpoints.Len())
	t.endpoints.Each(func(i uint16) {
		e := t.endpoints.list[i]
		reported := e.report(t.now)
		if reported.Ended = !t.scope.Follows(e.port) || t.endpoints.Leaves(i); reported.Ended {
			t.endpoints.Forget(i, e.addr, e.port)
		}
		out = append(out, reported)
	})
	slices.SortFunc(out, func(a, b outcome.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Addr.Port(), b.Addr.Port()), a.Addr.Compare(b.Addr))
	})
	return out
}
