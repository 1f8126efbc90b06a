package losses

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// NamespaceCounts are the TcpExt counters of one network namespace that say
// how many packets its listeners dropped. Only ListenDrops is conserved; the
// others say what kind of drop it was.
type NamespaceCounts struct {
	ListenDrops       uint64 // every drop at a listener, overflows included
	ListenOverflows   uint64 // of those, the ones at a full accept queue
	ReqQFullDrop      uint64 // of those, SYNs at a full SYN queue without cookies (TCPReqQFullDrop)
	ReqQFullDoCookies uint64 // SYNs answered with a cookie because the SYN queue was full: nothing lost (TCPReqQFullDoCookies)
	SyncookiesRecv    uint64 // valid cookies that came back

	// Torn: ListenDrops moved while the sockets were read, so that their
	// counters are ahead by drops that are not in these.
	Torn bool
}

// NamespaceDelta is how far the counters moved between two readings.
type NamespaceDelta NamespaceCounts

// Sub returns what was counted since base. A counter that went backwards
// belongs to another namespace under the same number and counts from zero.
func (c NamespaceCounts) Sub(base NamespaceCounts) NamespaceDelta {
	sub := func(v, b uint64) uint64 {
		if v < b {
			return v
		}
		return v - b
	}
	return NamespaceDelta{
		ListenDrops:       sub(c.ListenDrops, base.ListenDrops),
		ListenOverflows:   sub(c.ListenOverflows, base.ListenOverflows),
		ReqQFullDrop:      sub(c.ReqQFullDrop, base.ReqQFullDrop),
		ReqQFullDoCookies: sub(c.ReqQFullDoCookies, base.ReqQFullDoCookies),
		SyncookiesRecv:    sub(c.SyncookiesRecv, base.SyncookiesRecv),
		Torn:              c.Torn,
	}
}

// SocketDrops is one LISTEN socket's own drop counter at a tick.
type SocketDrops struct {
	ID      model.ListenerID
	Inode   uint32
	Drops   uint32 // SK_MEMINFO_DROPS (sk->sk_drops, an int): over-counts, and wraps
	Watched bool   // drops of unwatched listeners are not attributed
}

// Attributed are packets that one listener dropped in one tick.
type Attributed struct {
	ID      model.ListenerID
	Packet  model.Packet
	Packets uint64
	// Estimated: several listeners dropped in this tick; how many packets fall
	// to each is a split in proportion to their sockets' counters.
	Estimated bool
	// SynQueue: the packets were dropped in front of the SYN queue (or for want
	// of memory), not at a full accept queue: ListenDrops − ListenOverflows.
	SynQueue bool
}

// Attribution splits a network namespace's ListenDrops over its listeners:
// the namespace's counters say how many, the sockets' own counters say whose.
// Over any sequence of ticks the packets attributed and the ones that were not
// sum to the movement of ListenDrops, exactly.
//
// A socket's counter never misses a drop that ListenDrops has (tcp_listendrop
// moves both), but it moves in other cases too, so that it only ever serves as
// a weight and as a ceiling.
type Attribution struct {
	last  NamespaceCounts
	seen  map[socketKey]seenSocket
	tick  uint64
	carry []carried
	// Classified so far, cumulatively: the counters of one reading are summed
	// one after the other, and a drop between the two sums shows up in one of
	// them a tick early.
	synQueue int64

	shares []share // reused
}

// socketKey names a socket: a restarted listener, and each member of an
// SO_REUSEPORT group, has an inode of its own.
type socketKey struct {
	id    model.ListenerID
	inode uint32
}

type seenSocket struct {
	drops uint32
	tick  uint64
}

// carried are a listener's increments that no ListenDrop has matched yet.
type carried struct {
	id      model.ListenerID
	packets uint64
	watched bool
}

// NewAttribution starts counting: listeners that are here now count from
// their present value, those that appear later count whole.
func NewAttribution(start NamespaceCounts, sockets []SocketDrops) *Attribution {
	a := &Attribution{
		last: start,
		seen: make(map[socketKey]seenSocket, len(sockets)),
	}
	for _, s := range sockets {
		a.seen[socketKey{s.ID, s.Inode}] = seenSocket{drops: s.Drops}
	}
	return a
}

// Tick takes the namespace's counters and then all of its listeners' counters,
// read in this order, the unwatched ones too. It appends what the watched
// listeners dropped since the last tick to dst, and returns how many dropped
// packets it cannot give to any of them.
func (a *Attribution) Tick(now NamespaceCounts, sockets []SocketDrops, dst []Attributed) (attributed []Attributed, unattributed uint64) {
	if now.ListenDrops < a.last.ListenDrops {
		// Another namespace under the same number: what its predecessor's
		// sockets had in hand belongs to drops that nobody can read any more.
		a.carry = a.carry[:0]
		a.synQueue = 0
	}
	delta := now.Sub(a.last)
	a.last = now
	a.tick++

	a.collect(sockets)
	left := a.split(delta.ListenDrops)
	dst, unwatched := a.report(delta, left, dst)
	a.carryOver()
	return dst, left + unwatched
}

// collect turns the sockets' counters into one share per address.
func (a *Attribution) collect(sockets []SocketDrops) {
	a.shares = a.shares[:0]
	for _, s := range sockets {
		key := socketKey{s.ID, s.Inode}
		n := s.Drops // a listener that is new counts whole
		if before, ok := a.seen[key]; ok {
			n = increment(before.drops, s.Drops)
		}
		a.seen[key] = seenSocket{drops: s.Drops, tick: a.tick}
		if n > 0 {
			a.shareOf(s.ID, s.Watched).fresh += uint64(n)
		}
	}
	a.forget(len(sockets))
	for _, c := range a.carry {
		a.shareOf(c.id, c.watched).old += c.packets
	}
}

// forget drops sockets that are closed, but only once they outnumber the living:
// one that a dump left out for a tick must not count whole when it is back.
func (a *Attribution) forget(living int) {
	if len(a.seen) <= 2*living+64 {
		return
	}
	for key, s := range a.seen {
		if s.tick != a.tick {
			delete(a.seen, key)
		}
	}
}

func (a *Attribution) shareOf(id model.ListenerID, watched bool) *share {
	for i := range a.shares {
		if a.shares[i].id == id {
			return &a.shares[i]
		}
	}
	a.shares = append(a.shares, share{id: id, watched: watched})
	return &a.shares[len(a.shares)-1]
}

// increment is how far a socket's u32 counter moved. A large step backwards is
// another socket that got the same inode, which counts whole; a small one
// forwards across 2³² is the counter's wrap.
func increment(before, now uint32) uint32 {
	if n := now - before; n < 1<<31 {
		return n
	}
	return now
}

// report appends the watched listeners' packets, and counts the others'.
func (a *Attribution) report(delta NamespaceDelta, left uint64, dst []Attributed) (attributed []Attributed, unwatched uint64) {
	synQueue := a.beforeTheAcceptQueue(delta)
	alone := len(a.shares) == 1 && left == 0
	for i := range a.shares {
		s := &a.shares[i]
		if s.packets == 0 {
			continue
		}
		// Several listeners share the SYN-queue drops in proportion.
		mine := mulDiv(s.packets, synQueue, delta.ListenDrops)
		if !s.watched {
			unwatched += s.packets
			continue
		}
		d := Attributed{ID: s.id, Estimated: len(a.shares) > 1}
		if !alone {
			dst = appendPackets(dst, d, model.PacketUnknown, mine, true)
			dst = appendPackets(dst, d, model.PacketUnknown, s.packets-mine, false)
			continue
		}
		vouched := min(s.vouched, s.packets-mine)
		k := kindsOf(s.packets-mine-vouched, s.fresh-min(s.fresh, mine), delta.SyncookiesRecv)
		k.unknown += vouched
		if delta.Torn {
			k = kinds{syn: k.syn, unknown: k.unknown + k.ack}
		}
		dst = appendPackets(dst, d, model.PacketSYN, mine, true)
		dst = appendPackets(dst, d, model.PacketSYN, k.syn, false)
		dst = appendPackets(dst, d, model.PacketACK, k.ack, false)
		dst = appendPackets(dst, d, model.PacketUnknown, k.unknown, false)
	}
	return dst, unwatched
}

func appendPackets(dst []Attributed, d Attributed, kind model.Packet, n uint64, synQueue bool) []Attributed {
	if n == 0 {
		return dst
	}
	d.Packet, d.Packets, d.SynQueue = kind, n, synQueue
	return append(dst, d)
}

// beforeTheAcceptQueue is how many of the tick's drops were no overflow of an
// accept queue. The sum over all ticks follows the counters, so that a drop
// caught between the reading of the two is not counted as one for good.
func (a *Attribution) beforeTheAcceptQueue(delta NamespaceDelta) uint64 {
	a.synQueue += int64(delta.ListenDrops) - int64(delta.ListenOverflows)
	n := min(uint64(max(a.synQueue, 0)), delta.ListenDrops)
	a.synQueue -= int64(n)
	return n
}

// carryOver carries the increments that no ListenDrop has matched yet into the next
// tick. A socket is read after its namespace, so the drops between the two
// readings are a tick ahead there. They are increments of this tick: whatever
// is left beyond as many is over-count, or too old to be matched.
func (a *Attribution) carryOver() {
	a.carry = a.carry[:0]
	for i := range a.shares {
		s := &a.shares[i]
		if rest := min(s.room(), s.fresh); rest > 0 {
			a.carry = append(a.carry, carried{id: s.id, packets: rest, watched: s.watched})
		}
	}
}

// kinds divides the dropped packets of one listener by kind.
type kinds struct{ syn, ack, unknown uint64 }

// kindsOf splits the overflows of a listener that alone dropped in a tick,
// from how far its socket's counter moved beyond ListenOverflows:
//
//   - a SYN at a full accept queue: tcp_conn_request → tcp_listendrop, which
//     adds 1 to ListenDrops and 1 to sk_drops;
//   - a final ACK (or the data behind it) at a full accept queue:
//     tcp_v4_syn_recv_sock → tcp_listendrop, 1 and 1; tcp_check_req then
//     returns no socket, tcp_v4_rcv takes discard_and_relse, and sk_drops_add
//     adds another 1. The same with tcp_abort_on_overflow=1;
//   - an ACK with a valid SYN cookie at a full accept queue: cookie_v4_check
//     → tcp_v4_syn_recv_sock → tcp_listendrop, 1 and 1, for the caller frees
//     the packet without counting it: not distinguishable from a SYN.
//
// So final ACKs are the socket's increments less the drops, at most all of
// them. It is an upper bound: a duplicate SYN or an RST to a half-open
// connection, and a bare ACK under TCP_DEFER_ACCEPT, add 1 to sk_drops alone.
// So does a drop between the two readings, which are therefore repeated until
// there was none (else they are Torn, and nothing is called an ACK).
func kindsOf(packets, increments, cookies uint64) kinds {
	ack := min(increments-min(increments, packets), packets)
	rest := packets - ack
	unknown := min(cookies, rest)
	return kinds{syn: rest - unknown, ack: ack, unknown: unknown}
}

// Tick books what was dropped since the last one; see Attribution.
func (b *Books) Tick(at time.Time, c NamespaceCounts, sockets []SocketDrops) {
	b.counts, b.unwatched = c, dropsUnwatched(sockets)
	if b.attribution == nil {
		b.attribution = NewAttribution(c, sockets)
		return
	}
	var rest uint64
	b.attributed, rest = b.attribution.Tick(c, sockets, b.attributed[:0])
	b.unattributed += rest
	for i := range b.attribution.shares {
		if s := &b.attribution.shares[i]; s.watched && s.fresh > 0 {
			b.Account(s.id).ledger.dropBySocket(s.fresh)
		}
	}
	for _, d := range b.attributed {
		a := b.Account(d.ID)
		a.drop(d, at)
		a.trace.drop(at, d.Packets)
		a.Moved(at)
	}
}

// dropsUnwatched sums the drop counters of the listeners that are not watched.
func dropsUnwatched(sockets []SocketDrops) (sum uint64) {
	for i := range sockets {
		if !sockets[i].Watched {
			sum += uint64(sockets[i].Drops)
		}
	}
	return sum
}
