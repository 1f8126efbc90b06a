package recall

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

// Nearest are the shortest handshakes of the latest clients, by their address: what another's of there takes at least.
// Behind one address there may be several hosts, and one of them nearer than those that were measured, so that it
// decides nothing but how long a delay is.
type Nearest struct {
	slots []nearestOf // nil before the first
}

type nearestOf struct {
	addr packet.Addr
	took uint16 // milliseconds
	at   time.Duration
}

// Note takes in that the handshake of a client of an address, with this hash, has taken that long.
func (n *Nearest) Note(at time.Duration, addr packet.Addr, hash uint64, took uint16) {
	if n.slots == nil {
		n.slots = make([]nearestOf, nearestSlots)
	}
	if s := &n.slots[hash%nearestSlots]; s.addr != addr || took < s.took || at-s.at > nearestFor {
		*s = nearestOf{addr, took, at}
	}
}

// Least is what one takes at least, 0 if nothing is known.
func (n *Nearest) Least(at time.Duration, addr packet.Addr, hash uint64) uint16 {
	if n.slots == nil {
		return 0
	}
	if s := &n.slots[hash%nearestSlots]; s.addr == addr && at-s.at <= nearestFor {
		return s.took
	}
	return 0
}
