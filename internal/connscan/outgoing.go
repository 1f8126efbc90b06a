package connscan

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

const (
	// ownPart is the part of a core that walks for the outgoing connections alone may
	// take while nothing says that there is a new one, and ownRest how long the latest
	// is relied on at most: a socket that connects long after it was made is found then.
	ownPart = 0.003
	ownRest = 5 * time.Minute
)

// ownOutgoing are the outgoing connections of a namespace's watched processes as the latest
// walk found them. While the processes hold no other socket there is no new one, and
// nobody has to go through a million of other connections for it.
type ownOutgoing struct {
	at          time.Time // of the walk; zero while not all is known
	cost        time.Duration
	connections []sockdiag.ConnectionID
	inodes      []uint32 // of all that the processes held except their clients' and listening sockets, ascending
}

// learn takes note of a walk of some cost that went through all outgoing connections:
// of the sockets that the processes hold, others are neither their clients' nor listening
// ones, and ascend.
func (o *ownOutgoing) learn(at time.Time, cost time.Duration, found []sockdiag.ConnectionID, held *heldSockets, others []uint32) {
	if *o = (ownOutgoing{connections: found}); held.complete() {
		o.at, o.cost, o.inodes = at, cost, others
	}
}

// serves reports whether all outgoing connections of the processes are known.
func (o *ownOutgoing) serves(now time.Time, held *heldSockets, others []uint32) bool {
	if o.at.IsZero() || now.Sub(o.at) >= min(cputime.Rest(o.cost, walkRest, ownPart), ownRest) || !held.complete() {
		return false
	}
	return !slices.ContainsFunc(others, func(inode uint32) bool { return !has(o.inodes, inode) })
}
