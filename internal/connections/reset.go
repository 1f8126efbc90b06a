package connections

import (
	"cmp"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// SlotsMissing says that clients wait although Tomcat seems to have room. Where
// not all connections were counted it may not.
func SlotsMissing(l *model.Listener) bool {
	c := l.Connector
	return l.AcceptQueue != nil && l.AcceptQueue.Length > 0 &&
		l.Connections != nil && !l.Connections.Partial && c != nil && c.MaxConnections != nil &&
		c.MaxConnections.Value > 0 && l.Connections.Accepted < c.MaxConnections.Value
}

// freeSlots is how many connections a Tomcat can hold that are not seen: what
// its limit leaves, or its own count where Actuator reports it.
func freeSlots(l *model.Listener) int {
	c := l.Connector
	held := c.MaxConnections.Value
	if n := c.CurrentConnections; n != nil && *n < held && *n > l.Connections.Accepted {
		held = *n - 1 // below the limit it reads one too many
	}
	return held - l.Connections.Accepted
}

// ShareReset divides the descriptors of a process whose socket the kernel has
// forgotten over those of its listeners that they may explain, each at most as many as it
// has room for. A descriptor does not show which port its socket had; connections of
// the process's other ports and outgoing ones that the peer reset may still be
// among them. The answer is by the index of the listeners.
func ShareReset(count int, listeners []*model.Listener) []int {
	rooms := make([]uint64, len(listeners))
	for i, l := range listeners {
		rooms[i] = uint64(freeSlots(l))
	}
	out := make([]int, len(listeners))
	for i, n := range losses.Allot(uint64(count), rooms, cmp.Compare) {
		out[i] = int(n)
	}
	return out
}
