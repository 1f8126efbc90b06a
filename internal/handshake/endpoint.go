package handshake

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/room"
)

// endpoint is an address and port, with its clients: those that are open, and the account of the others.
type endpoint struct {
	addr      packet.Addr
	port      uint16
	account   outcome.Account
	open      [numStages]int
	trusted   bool   // the kernel has had a socket of one of its clients
	letIn     bool   // one of its clients was
	shuts     bool   // the latest client that had ended its side when it was answered took the answer (see takes)
	roundTrip uint32 // of its clients' latest handshakes, the longest of which weigh most: milliseconds
}

// stage is the state of an open attempt.
type stage uint8

const (
	waiting stage = iota
	settling
	refused // settling, and the answer was "nothing listens"
	stalling
	stageUnreached
	stageInside // counted, and not known whether it is answered
	stageLeft
	numStages
)

func (a *attempt) stage() stage {
	switch {
	case a.has(counted) && a.has(inside):
		return stageInside
	case a.has(counted):
		return stageLeft
	case a.replies == 0 && !a.unread() && a.has(refusal):
		return refused
	case a.replies == 0 && !a.unread():
		return waiting
	case a.unreached():
		return stageUnreached
	case a.repeats > 0 || a.absent > 0 && !a.has(left):
		return stalling
	}
	return settling
}

// count counts an attempt that has ended.
func (e *endpoint) count(at time.Duration, a *attempt, o outcome.Outcome, hash uint64) {
	e.letIn = e.letIn || o == outcome.Connected || o == outcome.Delayed
	c := outcome.Client{
		Addr: a.client, Outcome: o, First: a.first, LetIn: a.has(inside),
		Unreached: o == outcome.GaveUp && a.unreached(),
		Single:    a.suspicious(o), Silent: o == outcome.HalfOpen && !a.has(rejected), Hash: hash,
	}
	if o == outcome.Delayed {
		c.Delay = a.delay()
	}
	e.account.Count(at, &c)
}

// report also resets what is of the time since the report before.
func (e *endpoint) report(at time.Duration) outcome.Endpoint {
	out := e.account.Report(at)
	out.Addr = netip.AddrPortFrom(e.addr.Netip(), e.port)
	out.Waiting, out.Settling, out.Stalling = e.open[waiting], e.open[settling]+e.open[refused], e.open[stalling]
	out.Refused = e.open[refused]
	out.Unreached, out.Inside, out.Left = e.open[stageUnreached], e.open[stageInside], e.open[stageLeft]
	return out
}

// endpoints are those of a Tracker. An attempt has the index of its own in list.
type endpoints struct {
	room.Accounts
	list []*endpoint
}

// of is the endpoint of an attempt.
func (es *endpoints) of(a *attempt) *endpoint { return es.list[a.endpoint] }

// obtain finds or makes the account of an address and port.
func (es *endpoints) obtain(a packet.Addr, port uint16) uint16 {
	i, addr, isNew := es.Obtain(a, port)
	if isNew {
		if int(i) == len(es.list) {
			es.list = append(es.list, nil)
		}
		es.list[i] = &endpoint{addr: addr, port: port}
	}
	return i
}
