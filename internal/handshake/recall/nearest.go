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
	// fading is how many handshakes it takes until one that took longer weighs little.
	fading = 64
)

// Nearest are the shortest handshakes of the latest clients, by their address: what another's of there takes at least, and how
// much longer some took. Behind one address there may be several hosts, and one of them nearer than those that were measured,
// so that it decides nothing but how long a delay is, and how soon a host answers.
type Nearest struct {
	slots []nearestOf // nil before the first
}

type nearestOf struct {
	addr packet.Addr
	took uint16 // milliseconds
	more uint16 // the latest took at most, the longest of which weigh most
	at   time.Duration
}

// Note takes in that the handshake of a client of an address, with this hash, has taken that long.
func (n *Nearest) Note(at time.Duration, addr packet.Addr, hash uint64, took uint16) {
	if n.slots == nil {
		n.slots = make([]nearestOf, nearestSlots)
	}
	s := &n.slots[hash%nearestSlots]
	switch {
	case s.addr != addr || at-s.at > nearestFor:
		*s = nearestOf{addr: addr, took: took, at: at}
	case took < s.took:
		s.more += s.took - took
		s.took, s.at = took, at
	}
	s.more = max(took-s.took, s.more-(s.more+fading-1)/fading)
}

// Least is what one takes at least, and more by how much longer some took; 0 if nothing is known.
func (n *Nearest) Least(at time.Duration, addr packet.Addr, hash uint64) (least, more uint16) {
	if n.slots == nil {
		return 0, 0
	}
	if s := &n.slots[hash%nearestSlots]; s.addr == addr && at-s.at <= nearestFor {
		return s.took, s.more
	}
	return 0, 0
}
