package connections

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Found is what one walk of the socket table found behind one listener.
type Found struct {
	Counts     model.Connections
	SynBacklog int              // half-open (SYN_RECV)
	Queued     int              // in the accept queue
	QueuedLeft int              // of those queued: the client sent a request and FIN
	Patience   time.Duration    // of those QueuedLeft: how long the most patient had waited when it closed
	Probes     int              // of those queued: the client sent FIN and nothing else
	OldestWait time.Duration    // of those queued
	OldestAsks *time.Duration   // of those queued that are no probes, nil where there are none
	Closed     []netip.AddrPort // peers of those whose client sent FIN before its answer: see unanswered

	farewells []netip.AddrPort // of Closed: see farewell
	notifies  int              // of these: what came last is unread
	lately    int              // of Closed: see closedLately
	bid       int              // of these: farewells
	queue     queue
	states    [sockdiag.Closing + 1]int
	lingering int // of those waiting: see lingerAge
	unclosed  int // of those that were closed idle, it seems: see stillOpen
	set       uint64
	quiet     quiet
	remotes   frequent
	forgotten forgotten
	subset    Subset // of those that were asked for, zero for all
}

// Add counts one socket in exactly one place. Inode 0 also marks SYN_RECV,
// TIME_WAIT and sockets without a process, so the state comes first.
func (f *Found) Add(s *sockdiag.Socket) {
	switch s.State {
	case sockdiag.SynRecv:
		f.SynBacklog++
		return
	case sockdiag.Established, sockdiag.CloseWait:
	default:
		f.states[s.State]++
		f.forgotten.end(s)
		return
	}
	if s.State == sockdiag.CloseWait && unanswered(s) {
		lately := s.HasInfo && s.Info.LastAckRecv < closedLately
		if f.Closed = append(f.Closed, s.Remote); lately {
			f.lately++
		}
		if farewell(s) {
			if lately {
				f.bid++
			}
			f.farewells = append(f.farewells, s.Remote)
			if s.RecvQ > 1 {
				f.notifies++
			}
		}
	}
	if s.Inode == 0 {
		f.Queued++
		f.wait(s)
		return
	}
	f.accept(s)
}

// The kernel answers a SYN of its own namespace at once. One that was sent at least this long ago has got no answer: the
// first of a client, and one that is sent after others that got none.
const (
	firstWithin = 500 * time.Millisecond
	nextWithin  = 50 * time.Millisecond
)

// Try takes the other end of a client's connection of the same namespace, see model.Connections.LocalTrying.
// Its timer is set when the SYN is sent, to its RTO (tcp_retransmit_timer).
func (f *Found) Try(s *sockdiag.Socket) {
	sent, least := s.Info.RTO-time.Duration(s.Expires)*time.Millisecond, firstWithin
	if s.Info.Retransmits > 0 {
		least = nextWithin
	}
	if s.State == sockdiag.SynSent && s.HasInfo && sent >= least && sent <= model.TriedWithin {
		f.Counts.LocalTrying++
	}
}

// wait counts one in the accept queue.
func (f *Found) wait(s *sockdiag.Socket) {
	probe := s.State == sockdiag.CloseWait && !unanswered(s)
	switch {
	case probe:
		f.Probes++
	case s.State == sockdiag.CloseWait:
		f.QueuedLeft++
	}
	if !s.HasInfo {
		return
	}
	// Set when the handshake completes, and nothing was sent since.
	age := s.Info.LastDataSent
	if s.State == sockdiag.CloseWait && !probe { // the FIN is an ACK, and its sender has nothing to send after it
		f.Patience = max(f.Patience, age-s.Info.LastAckRecv)
	}
	if f.OldestWait = max(f.OldestWait, age); !probe && (f.OldestAsks == nil || *f.OldestAsks < age) {
		f.OldestAsks = new(age)
	}
	f.queue.add(s)
}

func (f *Found) accept(s *sockdiag.Socket) {
	f.states[s.State]++
	f.Counts.Accepted++
	f.set ^= uint64(s.Inode) * 0x9e3779b97f4a7c15
	f.remotes.add(s.Remote.Addr())
	f.forgotten.open(s)
	phase := PhaseOf(s)
	f.Counts.Phases[phase]++
	switch {
	case phase == model.Sending && s.HasInfo && s.Info.Retransmits >= unacknowledgedAfter:
		f.Counts.Unacknowledged++
	case phase == model.Waiting && s.HasInfo:
		f.unread(s)
	case phase == model.InService && s.HasInfo:
		f.Counts.InServiceFor = max(f.Counts.InServiceFor, s.Info.LastDataRecv)
	case phase == model.Idle && silent(&s.Info) && s.Info.LastDataRecv >= requestWithin:
		f.Counts.Silent++
	case phase == model.Idle && silent(&s.Info):
		f.quiet.add(s.Info.LastDataRecv)
		f.Counts.MaybeBusy++
	case phase == model.Idle:
		f.quiet.add(min(s.Info.LastDataRecv, s.Info.LastDataSent))
		if maybeBusy(&s.Info) {
			f.Counts.MaybeBusy++
		}
	}
	if repeating(s) {
		f.Counts.Repeating++
	}
	if left(s) {
		f.Counts.Left++
		f.Counts.LeftFor = max(f.Counts.LeftFor, s.Info.LastAckRecv)
	}
	if s.State == sockdiag.CloseWait && s.RecvQ > 1 { // FIN itself counts as one byte
		f.Counts.Abandoned++
		if untouched(s) {
			f.Counts.Unread = max(f.Counts.Unread, s.Info.LastDataRecv)
		}
	} else if s.State == sockdiag.CloseWait && !unanswered(s) {
		f.Counts.ClosedIdle++
		if stillOpen(s) {
			f.unclosed++
		}
	}
}

// repeating: see model.Connections.Repeating.
func repeating(s *sockdiag.Socket) bool {
	i := &s.Info
	return s.HasInfo && i.HasBytesSent() && i.Retransmits < unacknowledgedAfter && i.BytesRetrans > 0 && repeatedPart*i.BytesRetrans >= i.BytesSent
}

// repeatedPart: one byte of as many is more than a network loses that works.
const repeatedPart = 33

// requestWithin is how long a connection that has just been made is not called idle: its first
// request is on the way. Its last_data_recv is the time of the handshake (tcp_create_openreq_child).
const requestWithin = time.Second

// unacknowledgedAfter are repetitions one after the other without an answer: a second and
// more has gone by then (TCP_RTO_MIN, doubled each time).
const unacknowledgedAfter = 3

// untouched: of a first request whose client has closed no byte was read. The FIN counts in
// both (tcpi_bytes_received, Recv-Q).
func untouched(s *sockdiag.Socket) bool {
	return s.HasInfo && nothingSent(&s.Info) && s.Info.BytesReceived > 1 && s.Info.BytesReceived <= uint64(s.RecvQ)
}

// unread counts a request that waits: tcpi_last_data_recv is how long it has, at least.
func (f *Found) unread(s *sockdiag.Socket) {
	age := s.Info.LastDataRecv
	switch {
	case nothingSent(&s.Info):
		f.Counts.Unread = max(f.Counts.Unread, age)
	case age >= lingerAge:
		f.lingering++
		fallthrough
	default:
		f.Counts.UnreadNext = max(f.Counts.UnreadNext, age)
	}
}

// Set differs where others are accepted, however many there are: an accepted connection has an
// inode of its own (sock_alloc_file).
func (f *Found) Set() uint64 { return f.set }

// Sockets is the number of all of them but the half-open and those in TIME_WAIT.
func (f *Found) Sockets() int {
	n := f.Queued - f.states[sockdiag.TimeWait]
	for _, k := range f.states {
		n += k
	}
	return n
}

// Finish ends the walk that began at that time, and how long it took. The counts of one that was cut short
// each time it was tried are partial.
func (f *Found) Finish(at time.Time, took time.Duration, partial bool) {
	f.Counts.At, f.Counts.Partial = at, partial
	f.queue.finish(took)
	f.Counts.Forgotten = f.forgotten.number()
	f.Counts.TopPeer = f.remotes.majority(f.Counts.Accepted)
	f.Counts.TopPeers = f.remotes.top()
	f.Counts.States = make(map[string]int)
	for state, n := range f.states {
		if n > 0 {
			f.Counts.States[sockdiag.State(state).String()] = n
		}
	}
}

// Behind are the counts as they are with a connector: what the kernel cannot
// distinguish is unclassified, as is what its keepAliveTimeout would have ended, and
// requests that a worker must have taken are in service.
func (f *Found) Behind(connector *model.Connector) *model.Connections {
	c := f.Counts
	c.Recent = f.quiet.recent()
	if connector != nil && connector.TLS {
		c.Abandoned, c.ClosedIdle = c.Abandoned-f.notifies, c.ClosedIdle+len(f.farewells)
	}
	attend(&c, f.lingering, connector)
	holdOpen(&c, f.unclosed, connector)
	f.quiet.outlived(&c, connector)
	unclassify(&c, connector)
	f.subset.state(&c)
	return &c
}

// Bound is what a listener is bound to: an address, and a device or 0 for any.
type Bound struct {
	Local  netip.AddrPort
	Device uint32
}

// Matcher finds the listener a connection belongs to.
type Matcher struct {
	Listeners map[Bound]*Found

	// The latest answer, which mostly is the next one's, too: connections differ
	// by the client's end.
	latest Bound
	found  *Found
}

// Find is the listener that a connection belongs to, nil for none.
func (m *Matcher) Find(s *sockdiag.Socket) *Found {
	if b := (Bound{s.Local, s.Interface}); m.found == nil || b != m.latest {
		m.latest, m.found = b, m.search(s)
	}
	return m.found
}

// Tried is the listener that an unanswered SYN was sent to by a client of the same namespace, nil for none. Towards an
// address of this host the kernel takes the same address as the source.
func (m *Matcher) Tried(s *sockdiag.Socket) *Found {
	to := s.RemoteAddress()
	if s.State != sockdiag.SynSent || !to.Addr().IsLoopback() && to.Addr() != s.LocalAddress().Addr() {
		return nil
	}
	return m.search(&sockdiag.Socket{Local: s.Remote, Interface: s.Interface})
}

// search tries the most specific bound address, then the same family's wildcard,
// then dual-stack [::], on the connection's device before any (the order of
// the kernel's __inet_lookup_listener scores). nil means that no listener fits.
func (m *Matcher) search(s *sockdiag.Socket) *Found {
	local := s.LocalAddress()
	tries := [3]netip.AddrPort{local, local, netip.AddrPortFrom(netip.IPv6Unspecified(), local.Port())}
	if local.Addr().Is4() {
		tries[1] = netip.AddrPortFrom(netip.IPv4Unspecified(), local.Port())
	}
	for _, address := range tries {
		if s.Interface != 0 {
			if g, ok := m.Listeners[Bound{address, s.Interface}]; ok {
				return g
			}
		}
		if g, ok := m.Listeners[Bound{address, 0}]; ok {
			return g
		}
	}
	return nil
}
