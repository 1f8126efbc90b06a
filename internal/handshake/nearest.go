package handshake

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

const (
	// nearestSlots is how many addresses are remembered at most.
	nearestSlots = 256
	// nearestFor is how long: networks change.
	nearestFor = time.Minute
)

// nearest are the shortest handshakes of the latest clients, by their address: what another's of there takes at least.
// Behind one address there may be several hosts, and one of them nearer than those that were measured, so that it
// decides nothing but how long a delay is.
type nearest struct {
	slots []nearestOf // nil before the first
}

type nearestOf struct {
	addr packet.Addr
	took uint16 // milliseconds
	at   time.Duration
}

// note takes in that the handshake of a client of an address, with this hash, has taken that long.
func (n *nearest) note(at time.Duration, addr packet.Addr, hash uint64, took uint16) {
	if n.slots == nil {
		n.slots = make([]nearestOf, nearestSlots)
	}
	if s := &n.slots[hash%nearestSlots]; s.addr != addr || took < s.took || at-s.at > nearestFor {
		*s = nearestOf{addr, took, at}
	}
}

// least is what one takes at least, 0 if nothing is known.
func (n *nearest) least(at time.Duration, addr packet.Addr, hash uint64) uint16 {
	if n.slots == nil {
		return 0
	}
	if s := &n.slots[hash%nearestSlots]; s.addr == addr && at-s.at <= nearestFor {
		return s.took
	}
	return 0
}

// measured takes in how long a client's handshake has taken.
func (t *Tracker) measured(at time.Duration, a *attempt) {
	t.nearest.note(at, a.client, t.table.hash(&key{client: a.client}), a.rtt)
}

// leastRoundTrip leaves what its handshake took at least out of the delay of a client whose answer to the SYN-ACK is not
// known. It stays Delayed.
func (t *Tracker) leastRoundTrip(at time.Duration, a *attempt) {
	if a.rtt > 0 || a.entered <= a.lastReply {
		return
	}
	most := min(a.entered-a.lastReply, a.entered-uint32(lateAfter/time.Millisecond))
	a.rtt = uint16(min(most, uint32(t.nearest.least(at, a.client, t.table.hash(&key{client: a.client})))))
}
