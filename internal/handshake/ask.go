package handshake

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/timers"
)

const (
	// mostAsked bounds the questions at one time; the others follow.
	mostAsked = 4096
	// staleAfter is how old what was read may be: of a socket that has sent data only the
	// segments show when it was made. A busy machine lets a tap wait between the two.
	staleAfter = 20 * time.Millisecond
)

// Ask asks the kernel about the clients for which a segment may have made a socket, now.
func (t *Tracker) Ask(now time.Duration) {
	t.present = max(t.present, now)
	t.quick = 0
	n := min(len(t.asking), mostAsked)
	for k, i := range t.asking[:n] {
		if k > 0 && t.clock()-now > staleAfter {
			n = k // the others when more has been read
			break
		}
		if i >= t.table.used {
			continue
		}
		a := t.table.at(i)
		if !a.has(asking) {
			continue // another has its place
		}
		a.signs &^= asking
		if !a.has(left) { // of one that has reset its connection there is nothing any more
			t.inquire(a)
		}
		if a.has(inside|late) || a.has(finished|left) {
			t.table.move(i, t.now) // nothing more has to be awaited
		}
		t.restage(a)
	}
	t.asking = append(t.asking[:0], t.asking[n:]...)
}

// askSoon has the kernel asked about an attempt.
func (t *Tracker) askSoon(i int32) {
	if a := t.table.at(i); !a.has(asking) && t.asked != nil {
		a.signs |= asking
		t.asking = append(t.asking, i)
	}
}

// inquire asks for an attempt's socket, and notes what the answer says.
func (t *Tracker) inquire(a *attempt) kernel.Socket {
	from := mark(a.first, t.clock())
	f := t.ask(a)
	t.present = max(t.present, t.clock()) // the kernel answered between the two
	a.clientEnd(from, f.Client)
	switch f.Socket {
	case kernel.Connection:
		a.found(from, mark(a.first, t.present), &f)
		t.roundTrip(a, f.ByBareACK)
	case kernel.HalfOpenSocket, kernel.NoSocket, kernel.OnlyListener:
		if f.Socket == kernel.HalfOpenSocket || !a.has(inside|late) && !a.supposed() {
			a.notIn(from, mark(a.first, t.now))
		}
	}
	return f.Socket
}

// roundTrip takes in when the client's answer to its SYN-ACK came, which was not read: with the socket, if nothing
// was dropped meanwhile; or if a bare ACK made that, of which there is no other (see answersSYNACK). After a second the
// SYN-ACK is repeated, which may not have been read yet.
func (t *Tracker) roundTrip(a *attempt, byBareACK bool) {
	if a.rtt > 0 || a.repeats > 0 || !a.has(inside) || a.entered <= a.lastReply || ms(a.entered-a.lastReply+jiffies) >= timers.First {
		return
	}
	bare := byBareACK && a.replies == 1 && !a.supposed()
	unread := a.lastIn == 0 && !a.has(overheard) && a.syns == 1
	if bare || unread && !t.proofs.drops.Between(t.endpoints.of(a).port, a.first+ms(a.lastReply), t.present) {
		a.rtt = uint16(a.entered - a.lastReply)
		t.measured(t.now, a)
	}
}

// measured takes in how long a client's handshake has taken.
func (t *Tracker) measured(at time.Duration, a *attempt) {
	t.nearest.Note(at, a.client, t.table.hash(&key{client: a.client}), a.rtt)
}

// leastRoundTrip is what the handshake of a client that was let in took at least, where its answer to the SYN-ACK is not known;
// 0 otherwise.
func (t *Tracker) leastRoundTrip(at time.Duration, a *attempt) uint32 {
	if a.rtt > 0 || a.entered <= a.lastReply {
		return 0
	}
	least, _ := t.nearest.Least(at, a.client, t.table.hash(&key{client: a.client}))
	return min(a.entered-a.lastReply, uint32(least))
}

func (t *Tracker) ask(a *attempt) kernel.Found {
	e := t.endpoints.of(a)
	if t.asked == nil || e.addr.Netip().IsUnspecified() {
		return kernel.Found{}
	}
	f := t.asked(netip.AddrPortFrom(e.addr.Netip(), e.port), netip.AddrPortFrom(a.client.Netip(), a.clientPort), uint32(a.link&^packet.Successor))
	e.trusted = e.trusted || f.Socket >= kernel.HalfOpenSocket
	e.letIn = e.letIn || f.Socket == kernel.Connection
	return f
}

// drop takes an attempt out of the open ones.
func (t *Tracker) drop(a *attempt) {
	e := t.endpoints.of(a)
	e.open[a.at]--
	if a.has(late) {
		e.account.LetInLate()
	}
}

// restage notes where an attempt stands now.
func (t *Tracker) restage(a *attempt) {
	e := t.endpoints.of(a)
	e.open[a.at]--
	a.at = a.stage()
	e.open[a.at]++
	if a.at == stageUnreached || a.at == stalling && !a.has(finished|left) {
		e.account.Trouble(a.first)
	}
}

// judge tells who asked for it.
func (t *Tracker) judge(a *attempt, o outcome.Outcome, answer outcome.Answer) {
	if t.judged == nil {
		return
	}
	e := t.endpoints.of(a)
	j := outcome.Judged{
		Server: netip.AddrPortFrom(e.addr.Netip(), e.port), Client: netip.AddrPortFrom(a.client.Netip(), a.clientPort),
		Outcome: o, LetIn: a.has(inside), LetInLate: a.has(late), Answer: answer, Ended: ms(a.ended),
	}
	if a.has(inside) {
		j.Delay = a.delay() - ms(t.leastRoundTrip(t.now, a))
	}
	t.judged(j)
}
