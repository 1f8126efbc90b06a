package handshake

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
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
	Socket func(server, client netip.AddrPort, device uint32) Found
	// Judged is called with what becomes of each client, for tests and measurements. It may
	// not call the Tracker.
	Judged func(Judged)
	// Clock is the present, where what is observed is older: nil if it is what Ask is told.
	Clock func() time.Duration
}

const (
	defaultMaxOpen = 100_000
	defaultRetries = 5 // TCP_SYNACK_RETRIES
	maxEndpoints   = 256
)

// Tracker follows the attempts to connect to a set of ports. Its only clock are
// the times it is given: durations since some moment, which never fall by more
// than packets overtake each other. It is not safe for concurrent use.
type Tracker struct {
	retries uint8
	asked   func(server, client netip.AddrPort, device uint32) Found
	judged  func(Judged)
	asking  []int32                  // attempts about which the kernel is to be asked
	present time.Duration            // when it was last asked
	clock   func() time.Duration     // Options.Clock
	quick   int                      // questions about those that end, since the last Ask
	ports   []uint16                 // sorted
	local   map[packet.Addr]struct{} // nil: every address is
	locals  []netip.Prefix           // of more than one address each
	now     time.Duration

	table     *table
	proved    proved
	ended     ended
	endpoints []*endpoint
	byAddr    map[endpointKey]uint16
	unused    []uint16    // places in endpoints
	recent    endpointKey // the latest that was looked for, as most are the same
	recentAt  uint16      // its place in endpoints

	untracked outcome.Sketch // attempts beyond the table's limit

	cookies  marks
	drops    map[uint16]*marks // by port, of those that are followed
	wide     bool
	narrowed time.Duration // when wide was last ended
	widened  time.Duration // when it last began
	foreign  uint64
	unread   unread
	resetAt  time.Duration // when the server last sent a RST to an open attempt
	latest   int32         // attempt whose SYN-ACK is not read, or none
}

type endpointKey struct {
	addr packet.Addr
	port uint16
}

// NewTracker makes a tracker that follows no port yet.
func NewTracker(o Options) *Tracker {
	return &Tracker{
		retries: uint8(min(max(cmp.Or(o.SynAckRetries, defaultRetries), 0), 255)),
		asked:   o.Socket,
		judged:  o.Judged,
		clock:   o.Clock,
		latest:  none,
		table:   newTable(cmp.Or(o.MaxOpen, defaultMaxOpen)),
		byAddr:  make(map[endpointKey]uint16),
	}
}

// SetPorts changes the ports that are followed. What is open on others is
// forgotten without an outcome; their totals are in the next report, the last one.
func (t *Tracker) SetPorts(ports []uint16) {
	t.ports = slices.Sorted(slices.Values(ports))
	maps.DeleteFunc(t.drops, func(port uint16, _ *marks) bool { return port != 0 && !t.follows(port) })
	forgotten := func(a *attempt) bool {
		e := t.endpoints[a.endpoint]
		if t.follows(e.port) {
			return false
		}
		e.open[a.at]--
		return true
	}
	t.table.drop(forgotten)
	t.proved.drop(forgotten)
}

func (t *Tracker) follows(port uint16) bool {
	_, found := slices.BinarySearch(t.ports, port)
	return found
}

// SetLocal says which addresses are the namespace's own: packets that it
// forwards to others are no clients of its. Those of the loopback always are its
// own.
func (t *Tracker) SetLocal(addrs []netip.Prefix) {
	t.local, t.locals = make(map[packet.Addr]struct{}, len(addrs)), nil
	for _, p := range addrs {
		if p.IsSingleIP() {
			t.local[p.Addr().As16()] = struct{}{}
			continue
		}
		t.locals = append(t.locals, p)
	}
}

// isLocal reports whether a segment is for this namespace.
func (t *Tracker) isLocal(s *packet.Segment) bool {
	if t.local == nil || s.Loopback() {
		return true
	}
	if _, own := t.local[s.Dst]; own {
		return true
	}
	to := s.Dst.Netip()
	return slices.ContainsFunc(t.locals, func(p netip.Prefix) bool { return p.Contains(to) })
}

// Open is how many attempts are followed at the moment.
func (t *Tracker) Open() int { return t.table.open }

// Foreign counts SYNs to addresses that SetLocal did not name.
func (t *Tracker) Foreign() uint64 { return t.foreign }

// Stalling reports whether the kernel repeats a SYN-ACK to an open attempt, or would
// not repeat one.
func (t *Tracker) Stalling() bool {
	return t.retries == 0 || slices.ContainsFunc(t.endpoints, func(e *endpoint) bool { return e.open[stalling] > 0 })
}

// Cookies notes that the kernel sent SYN cookies between two moments: a SYN-ACK
// of that time that is not repeated proves nothing.
func (t *Tracker) Cookies(from, to time.Duration) { t.cookies.mark(from, to) }

// Widen says whether from now on all segments of the clients are observed.
func (t *Tracker) Widen(wide bool) {
	switch {
	case t.wide && !wide:
		t.narrowed = t.now
	case wide && !t.wide && t.clock != nil:
		t.widened = t.clock() // what is read now may have come before
	case wide && !t.wide:
		t.widened = t.now
	}
	t.wide = wide
}

// Observe takes in a segment. It allocates nothing but room for more attempts.
func (t *Tracker) Observe(at time.Duration, s *packet.Segment) {
	t.now = max(t.now, at)
	switch s.Flags & (packet.FlagSYN | packet.FlagACK | packet.FlagRST) {
	case packet.FlagSYN:
		if s.Incoming && t.follows(s.DstPort) {
			t.syn(at, s)
		}
	case packet.FlagSYN | packet.FlagACK:
		if i := t.fromServer(s); i != none {
			t.reply(at, i, s)
		}
	case packet.FlagRST, packet.FlagRST | packet.FlagACK:
		if s.Outgoing {
			t.unread.observedReset(at)
		}
		t.reset(at, s)
	case packet.FlagACK:
		t.acknowledged(at, s)
	}
}

// acknowledged takes in a segment that is neither SYN nor RST, of either end.
func (t *Tracker) acknowledged(at time.Duration, s *packet.Segment) {
	if s.Flags&packet.FlagFIN != 0 || s.Payload > 0 {
		if i := t.fromServer(s); i != none {
			t.responds(at, t.table.at(i), s)
			if s.Flags&packet.FlagFIN == 0 {
				return
			}
			if deadline, ok := t.table.at(i).serverEnds(at, s); ok {
				t.restage(t.table.at(i))
				t.table.move(i, deadline)
				return
			}
		}
	}
	i := t.fromClient(s)
	if i == none {
		return
	}
	a := t.table.at(i)
	if a.unread() && a.proves(s) {
		t.proveByACK(at, i, s)
		return
	}
	e := t.endpoints[a.endpoint]
	all := a.has(overheard) || packet.InSubset(a.clientPort, e.port) && a.first+ms(a.lastReply) > t.unread.from
	first := a.rtt == 0
	ask := a.segment(at, s, all)
	if first && a.rtt > 0 {
		e.roundTrip = max(uint32(a.rtt), e.roundTrip-e.roundTrip/8)
	}
	switch {
	case ask:
		t.askSoon(i)
	case a.has(served | finished):
		t.table.move(i, at)
	}
}

// responds takes in a segment with data of the server: to a client of the subset it is the first
// byte of its answer.
func (t *Tracker) responds(at time.Duration, a *attempt, s *packet.Segment) {
	e := t.endpoints[a.endpoint]
	if s.Payload == 0 || a.replies == 0 || s.Seq != a.serverISN+1 || a.has(timed|finished|left) || !packet.InSubset(a.clientPort, e.port) {
		return
	}
	a.signs |= timed
	a.showsSocket(mark(a.first, at))
	e.account.Responds(at - a.first)
}

func (t *Tracker) fromClient(s *packet.Segment) int32 {
	if !s.Incoming || !t.follows(s.DstPort) {
		return none
	}
	return t.find(s.Src, s.SrcPort, s.Dst, s.DstPort)
}

func (t *Tracker) fromServer(s *packet.Segment) int32 {
	if !s.Outgoing || !t.follows(s.SrcPort) {
		return none
	}
	return t.find(s.Dst, s.DstPort, s.Src, s.SrcPort)
}

func (t *Tracker) find(client packet.Addr, clientPort uint16, server packet.Addr, port uint16) int32 {
	e, ok := t.known(endpointKey{server, port})
	if !ok {
		if e, ok = t.byAddr[endpointKey{port: port}]; !ok {
			return none
		}
	}
	return t.table.find(&key{client, clientPort, e})
}

func (t *Tracker) known(k endpointKey) (i uint16, ok bool) {
	if k == t.recent {
		return t.recentAt, true
	}
	if i, ok = t.byAddr[k]; ok {
		t.recent, t.recentAt = k, i
	}
	return i, ok
}

func (t *Tracker) syn(at time.Duration, s *packet.Segment) {
	if !t.isLocal(s) {
		t.foreign++
		return
	}
	k := key{s.Src, s.SrcPort, t.endpoint(s.Dst, s.DstPort)}
	i := t.table.find(&k)
	if i != none && t.table.at(i).isn != s.Seq { // the client has begun again
		if a := t.table.at(i); a.unread() {
			a.signs |= replaced
		} else {
			t.finish(at, a)
			t.table.remove(i)
		}
		i = none
	}
	if i == none {
		t.begin(at, &k, s)
		return
	}
	a := t.table.at(i)
	if uint16(s.Index) != a.link && at-a.first-ms(a.lastSYN) < duplicate {
		return // the same packet on another device
	}
	if a.unanswered() { // the one before
		a.signs |= ignored
		t.endpoints[a.endpoint].account.Unanswered()
		t.endpoints[a.endpoint].account.Trouble(a.first)
	}
	deadline := a.syn(at)
	if t.unread.at(at) {
		t.unread.doubt = true
		deadline = a.heard(at)
	}
	t.restage(a)
	t.table.move(i, deadline)
}

func (t *Tracker) begin(at time.Duration, k *key, s *packet.Segment) {
	e := t.endpoints[k.endpoint]
	i := t.table.add(k, at)
	if i == none {
		t.sketch(at, e, k, s.Seq)
		return
	}
	a := t.table.at(i)
	a.isn, a.link, a.first = s.Seq, uint16(s.Index), at
	if first, again := t.ended.firstSYN(t.name(k, s.Seq)); again {
		a.first, a.syns = first, 1
	}
	deadline := a.syn(at)
	if t.unread.at(at) {
		deadline = a.heard(at)
		t.latest = i
	}
	t.table.move(i, deadline)
	a.at = a.stage()
	e.open[a.at]++
}

// sketch counts a client for which there is no room.
func (t *Tracker) sketch(at time.Duration, e *endpoint, k *key, isn uint32) {
	e.account.Untracked(t.untracked.Add(at, t.name(k, isn)))
}

func (t *Tracker) reply(at time.Duration, i int32, s *packet.Segment) {
	a := t.table.at(i)
	if a.replies > 0 && !a.has(owed) && s.Seq == a.serverISN && at-a.first-ms(a.lastReply) < duplicate {
		return // the same packet on another device
	}
	if s.Ack-a.isn-1 >= maxSYNData {
		return // of an earlier connection
	}
	deadline := a.reply(at, s.Seq, t.wide && at >= t.widened)
	t.restage(a)
	t.table.move(i, deadline)
}

// reset asks both ways: on the loopback a port can be the client's as well.
func (t *Tracker) reset(at time.Duration, s *packet.Segment) {
	if i := t.fromServer(s); i != none {
		t.resetAt = at
		a := t.table.at(i)
		if (a.unread() || a.supposed() && !a.has(counted)) && s.Seq != 0 {
			t.forget(i) // before a response, or after
			return
		}
		if deadline, ok := a.serverReset(at, s); ok {
			t.restage(a)
			t.table.move(i, deadline)
			return
		}
	}
	if i := t.fromClient(s); i != none {
		a := t.table.at(i)
		if a.unread() && a.proves(s) {
			a.suppose()
			t.endpoints[a.endpoint].letIn = true
		}
		if deadline, ok := a.clientReset(at, s); ok {
			t.restage(a)
			t.table.move(i, deadline)
		}
	}
}

// Advance judges the attempts whose time is over: every segment observed later
// must be of at or after.
func (t *Tracker) Advance(at time.Duration) {
	t.now = max(t.now, at)
	t.Ask(at)
	t.probe()
	if t.unread.due && at >= max(t.unread.to, t.unread.until) {
		t.unread.due = false
		t.settle(at)
	}
	t.proved.due(min(at, t.unread.calmTo), func(a *attempt) { t.proven(at, a) })
	t.table.due(at, func(a *attempt) (deadline time.Duration) { return t.end(at, a) })
	t.ended.advance(at)
}

// end counts an attempt whose time is over, or returns when it will be.
func (t *Tracker) end(at time.Duration, a *attempt) (deadline time.Duration) {
	if deadline := a.undropped(); t.unread.due && deadline > at {
		return deadline
	}
	if a.unread() {
		switch deadline = t.resolve(at, a, t.ask(a).Socket, t.unread.moved.Killed > 0); {
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

// after is when to look again at one that is counted, or 0.
func (t *Tracker) after(at time.Duration, a *attempt) (deadline time.Duration) {
	again, done := t.follow(at, a)
	if done || t.endpoints[a.endpoint].open[stageInside] > t.table.limit/2 {
		t.drop(a)
		return 0
	}
	return again
}

// endpoint finds or makes the account of an address and port.
func (t *Tracker) endpoint(a packet.Addr, port uint16) (i uint16) {
	if i, ok := t.known(endpointKey{a, port}); ok {
		return i
	}
	// One for all further addresses of a port, as long as it has that one: what it has open is found there.
	if i, ok := t.byAddr[endpointKey{port: port}]; ok {
		return i
	}
	if len(t.byAddr) >= maxEndpoints {
		a = packet.Addr{}
	}
	e := &endpoint{addr: a, port: port}
	if n := len(t.unused); n > 0 {
		i = t.unused[n-1]
		t.unused, t.endpoints[i] = t.unused[:n-1], e
	} else {
		i = uint16(len(t.endpoints))
		t.endpoints = append(t.endpoints, e)
	}
	t.byAddr[endpointKey{a, port}] = i
	return i
}

// unfollow forgets an endpoint of which nothing is open: what its place is used for next is another.
func (t *Tracker) unfollow(e *endpoint) {
	k := endpointKey{e.addr, e.port}
	t.unused = append(t.unused, t.byAddr[k])
	delete(t.byAddr, k)
	t.recent, t.recentAt = endpointKey{}, 0
}

// Report is the state of all ports that have had a client, sorted by port and
// address. Those that are no longer followed are in it once.
func (t *Tracker) Report() []outcome.Endpoint {
	out := make([]outcome.Endpoint, 0, len(t.byAddr))
	for _, i := range t.byAddr {
		e := t.endpoints[i]
		reported := e.report(t.now)
		if reported.Ended = !t.follows(e.port); reported.Ended {
			t.unfollow(e)
		}
		out = append(out, reported)
	}
	slices.SortFunc(out, func(a, b outcome.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Addr.Port(), b.Addr.Port()), a.Addr.Compare(b.Addr))
	})
	return out
}
