package target

import (
	"cmp"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Candidate is a listening address as a LISTEN dump shows it, with its owner.
type Candidate struct {
	ID        model.ListenerID
	Members   []sockdiag.Listener // several under SO_REUSEPORT
	Owner     *owner.Process
	Processes int // that hold a member, of those that are known
	Connector *model.Connector
	// Unavailable is what discovery could not read of its process.
	Unavailable []model.Unavailable

	claims []claim // why it is watched, but for all and Tomcats
}

// Port is the port it listens on.
func (c *Candidate) Port() uint16 { return c.ID.Address.Port() }

// Worst is the member whose queue is fullest.
func (c *Candidate) Worst() *sockdiag.Listener {
	best := &c.Members[0]
	for i := range c.Members {
		if m := &c.Members[i]; ratio(m) > ratio(best) {
			best = m
		}
	}
	return best
}

func ratio(l *sockdiag.Listener) float64 { return model.QueueRatio(l.RecvQ, l.SendQ) }

// Inodes are those of its sockets.
func (c *Candidate) Inodes() []uint32 {
	out := make([]uint32, len(c.Members))
	for i := range c.Members {
		out[i] = c.Members[i].Inode
	}
	return out
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
			c = &Candidate{ID: id}
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
