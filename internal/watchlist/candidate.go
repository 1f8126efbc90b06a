package watchlist

import (
	"cmp"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Candidate is a listening address that may be selected.
type Candidate struct {
	facts.Listening
	// Discovered is what stands behind it, without the limits given by hand.
	Discovered *model.Connector
	// Unavailable is what discovery could not read of its process.
	Unavailable []model.Unavailable

	claims []claim // why it is watched, but for all and Tomcats
}

// Group puts the members of SO_REUSEPORT groups together.
// ids are their names.
func Group(ids []model.ListenerID, listeners []sockdiag.Listener) []*Candidate {
	var out []*Candidate
	byID := make(map[model.ListenerID]*Candidate, len(listeners))
	for i := range listeners {
		id := ids[i]
		c, ok := byID[id]
		if !ok {
			c = &Candidate{Listening: facts.Listening{ID: id}}
			byID[id], out = c, append(out, c)
		}
		c.Members = append(c.Members, listeners[i])
	}
	return out
}

// Order sorts by port, namespace, address, and device: the order of the screen
// and of the JSON, and what decides who is beyond --max-listeners.
func Order(list []*Candidate) {
	slices.SortFunc(list, func(a, b *Candidate) int {
		return cmp.Or(
			cmp.Compare(a.Port(), b.Port()),
			cmp.Compare(a.ID.NetNS, b.ID.NetNS),
			a.ID.Address.Compare(b.ID.Address),
			cmp.Compare(a.ID.Device, b.ID.Device),
		)
	})
}
