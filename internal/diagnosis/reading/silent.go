package reading

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// SilentPeer is a peer that has not answered several connects of the process for seconds, as many as a fifth of the requests in hand at
// least; nil where there is none.
func SilentPeer(l *model.Listener) *model.Peer {
	d := DownstreamOf(l)
	if d == nil || d.ByUser {
		return nil
	}
	inHand := InHand(l) + Phase(l, model.Unclassified) + LeftInService(l)
	for i := range d.Peers {
		p := &d.Peers[i]
		if p.Connecting >= silentLeast && p.OldestConnect >= silentFor && inHand > 0 && 5*p.Connecting >= inHand {
			return p
		}
	}
	return nil
}

// silentLeast is of how many connects that is said, silentFor for how long: longer than two SYNs that are lost (1 s, then 2 s).
const (
	silentLeast = 3
	silentFor   = 3 * time.Second
)
