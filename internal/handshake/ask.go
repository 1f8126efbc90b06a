package handshake

import (
	"net/netip"
	"time"
)

// mostAsked bounds the questions at one time; the others follow.
const mostAsked = 4096

// Ask asks the kernel about the clients for which a segment may have made a socket, now.
func (t *Tracker) Ask(now time.Duration) {
	t.present = max(t.present, now)
	t.quick = 0
	n := min(len(t.asking), mostAsked)
	for _, i := range t.asking[:n] {
		if i >= t.table.used {
			continue
		}
		a := t.table.at(i)
		if !a.has(asking) {
			continue // another has its place
		}
		a.signs &^= asking
		t.inquire(a)
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
func (t *Tracker) inquire(a *attempt) Socket {
	f := t.ask(a)
	if t.clock != nil {
		t.present = max(t.present, t.clock())
	}
	now := mark(a.first, t.present)
	switch f.Socket {
	case Connection:
		a.found(now, &f)
	case HalfOpenSocket:
		a.notIn(now)
	case NoSocket, OnlyListener:
		if !a.has(inside|late) && !a.supposed() {
			a.notIn(now)
		}
	}
	return f.Socket
}

func (t *Tracker) ask(a *attempt) Found {
	e := t.endpoints[a.endpoint]
	if t.asked == nil || e.addr == (addr{}) {
		return Found{}
	}
	f := t.asked(netip.AddrPortFrom(e.addr.netip(), e.port), netip.AddrPortFrom(a.client.netip(), a.clientPort), uint32(a.link&^successor))
	e.trusted = e.trusted || f.Socket >= HalfOpenSocket
	e.letIn = e.letIn || f.Socket == Connection
	return f
}

// drop takes an attempt out of the open ones.
func (t *Tracker) drop(a *attempt) { t.endpoints[a.endpoint].open[a.at]-- }

// restage notes where an attempt stands now.
func (t *Tracker) restage(a *attempt) {
	e := t.endpoints[a.endpoint]
	e.open[a.at]--
	a.at = a.stage()
	e.open[a.at]++
	if a.at == stalling && !a.has(finished|left) {
		e.trouble(a)
	}
}
