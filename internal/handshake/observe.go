package handshake

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// Observe takes in a segment. It allocates nothing but room for more attempts.
func (t *Tracker) Observe(at time.Duration, s *packet.Segment) {
	t.now = max(t.now, at)
	switch s.Flags & (packet.FlagSYN | packet.FlagACK | packet.FlagRST) {
	case packet.FlagSYN:
		if s.Incoming && t.scope.Follows(s.DstPort) {
			t.syn(at, s)
		}
	case packet.FlagSYN | packet.FlagACK:
		if i := t.fromServer(s); i != none {
			t.reply(at, i, s)
		}
	case packet.FlagRST, packet.FlagRST | packet.FlagACK:
		if s.Outgoing {
			t.unread.ObservedReset(at)
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
			t.endpoints.of(t.table.at(i)).account.ServerEnded(t.table.at(i).isAlert(s))
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
	e := t.endpoints.of(a)
	all := a.has(overheard) || packet.InSubset(a.clientPort, e.port) && a.first+ms(a.lastReply) > t.unread.From
	if a.sendsMore(s) && mark(a.first, at) > max(a.entered, a.lastIn)+t.finWithin(at, a) {
		a.signs |= there
	}
	first, waits := a.rtt == 0, a.has(finished) && !a.has(received)
	ask := a.segment(at, s, all)
	if waits && a.has(received) {
		t.takes(a)
	}
	if first && a.rtt > 0 {
		e.roundTrip = max(uint32(a.rtt), e.roundTrip-e.roundTrip/8)
		t.measured(at, a)
	}
	switch {
	case ask:
		t.askSoon(i)
	case a.has(served | finished | closed):
		t.table.move(i, at)
	}
}

// responds takes in a segment with data of the server: to a client of the subset it is the first byte of its answer.
func (t *Tracker) responds(at time.Duration, a *attempt, s *packet.Segment) {
	e := t.endpoints.of(a)
	if s.Payload == 0 || a.replies == 0 || s.Seq != a.serverISN+1 || a.has(timed|finished|left) || !packet.InSubset(a.clientPort, e.port) {
		return
	}
	a.signs |= timed
	a.showsSocket(mark(a.first, at), true)
	e.account.Responds(at - a.first)
}

func (t *Tracker) fromClient(s *packet.Segment) int32 {
	if !s.Incoming || !t.scope.Follows(s.DstPort) {
		return none
	}
	return t.find(s.Src, s.SrcPort, s.Dst, s.DstPort)
}

func (t *Tracker) fromServer(s *packet.Segment) int32 {
	if !s.Outgoing || !t.scope.Follows(s.SrcPort) {
		return none
	}
	return t.find(s.Dst, s.DstPort, s.Src, s.SrcPort)
}

func (t *Tracker) find(client packet.Addr, clientPort uint16, server packet.Addr, port uint16) int32 {
	i := none
	if e, ok := t.endpoints.Find(server, port); ok {
		i = t.table.find(&key{client, clientPort, e})
	}
	if i == none {
		if e, ok := t.endpoints.Before(server, port); ok {
			i = t.table.find(&key{client, clientPort, e})
		}
	}
	return i
}

func (t *Tracker) syn(at time.Duration, s *packet.Segment) {
	if !t.scope.IsLocal(s) {
		t.foreign++
		return
	}
	i := t.find(s.Src, s.SrcPort, s.Dst, s.DstPort)
	if i != none && t.table.at(i).isn != s.Seq { // the client has begun again
		if a := t.table.at(i); a.unread() {
			a.signs |= replaced
		} else {
			t.again = true
			t.finish(at, a)
			t.table.remove(i)
			t.again = false
		}
		i = none
	}
	if i == none {
		t.begin(at, &key{s.Src, s.SrcPort, t.endpoints.obtain(s.Dst, s.DstPort)}, s)
		return
	}
	a := t.table.at(i)
	if uint16(s.Index) != a.link && at-a.first-ms(a.lastSYN) < duplicate {
		return // the same packet on another device
	}
	if a.unanswered() { // the one before
		a.signs |= ignored
		t.endpoints.of(a).account.Unanswered()
		t.endpoints.of(a).account.Trouble(a.first)
	}
	if a.unread() {
		a.unknown = inc(a.unknown)
	}
	deadline := a.syn(at)
	if t.unread.At(at) {
		t.unread.Doubt = true
		deadline = a.heard(at)
	}
	t.restage(a)
	t.table.move(i, deadline)
}

func (t *Tracker) begin(at time.Duration, k *key, s *packet.Segment) {
	e := t.endpoints.list[k.endpoint]
	i := t.table.add(k, at)
	if i == none && t.makeRoom(at, k.endpoint) {
		i = t.table.add(k, at)
	}
	if i == none {
		t.sketch(at, e, k, s.Seq)
		return
	}
	a := t.table.at(i)
	a.isn, a.link, a.first = s.Seq, uint16(s.Index), at
	if first, again := t.ended.FirstSYN(t.name(k, s.Seq)); again {
		a.first, a.syns = first, 1
	}
	deadline := a.syn(at)
	if t.unread.At(at) {
		deadline = a.heard(at)
		t.latest = i
	}
	t.table.move(i, deadline)
	a.at = a.stage()
	e.open[a.at]++
}

// makeRoom ends an attempt of the endpoint that has most, if that is more than the newcomer would have, so that the flood of
// one listener turns out no client of another.
func (t *Tracker) makeRoom(at time.Duration, newcomer uint16) bool {
	i := t.table.surplus(newcomer)
	if i == none {
		return false
	}
	t.turnOut(at, i)
	return true
}

func (t *Tracker) reply(at time.Duration, i int32, s *packet.Segment) {
	a := t.table.at(i)
	if a.replies > 0 && !a.has(owed) && s.Seq == a.serverISN && at-a.first-ms(a.lastReply) < duplicate {
		return // the same packet on another device
	}
	if s.Ack-a.isn-1 >= maxSYNData {
		return // of an earlier connection
	}
	if t.unread.Moved.Drops > 0 {
		t.ignored(a)
	}
	deadline := a.reply(at, s.Seq, t.wide && at >= t.widened)
	t.restage(a)
	t.table.move(i, deadline)
}

// reset asks both ways: on the loopback a port can be the client's as well.
func (t *Tracker) reset(at time.Duration, s *packet.Segment) {
	if s.Outgoing && s.Seq != 0 && t.scope.Follows(s.SrcPort) && t.scope.IsFrom(s) { // also of connections from before
		t.endpoints.list[t.endpoints.obtain(s.Src, s.SrcPort)].account.ServerReset(at, s)
	}
	if e, known := t.endpoints.Find(s.Dst, s.DstPort); known && s.Incoming {
		t.endpoints.list[e].account.ClientEnded(s.Src, s.SrcPort)
	}
	if i := t.fromServer(s); i != none {
		t.resetAt = at
		a := t.table.at(i)
		if a.has(finished | left | shut) {
			t.endpoints.of(a).account.ClientEnded(a.client, a.clientPort)
		}
		if a.has(finished) && !a.has(counted|left|closed) && t.endpoints.of(a).shuts {
			a.signs = a.signs&^finished | shut // it waits, as others do
		}
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
		e := t.endpoints.of(a)
		if a.unread() && a.proves(s) {
			a.suppose()
			e.letIn = true
		}
		e.shuts = e.shuts && (!a.has(finished) || a.has(received))
		if deadline, ok := a.clientReset(at, s); ok {
			t.restage(a)
			t.table.move(i, deadline)
		}
	}
}
