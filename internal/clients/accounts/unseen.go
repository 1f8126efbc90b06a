package accounts

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// unseenFor is how long dropped SYNs may be without a client: a packet is read a quarter
// of a second after it was counted.
const unseenFor = 2 * time.Second

// unseen says which listeners' clients are not those that the handshakes show.
func (d *draft) unseen() (out []model.Unavailable) {
	for i := range d.Listeners {
		l := &d.Listeners[i]
		if d.clients.of(l.ID) == nil || !l.Listening() {
			continue
		}
		u := model.Unavailable{What: "clients by outcome: those of " + l.ID.String()}
		h := d.next.history(l.ID.NetNS, l.ID.Address)
		switch n := droppedUnseen(l); {
		case sharesAddress(d.Snapshot, l):
			u.Why = "another listener has the same address on another device"
			u.How = "bind them to addresses of their own to count their clients"
		case n == 0:
			h.unseen = time.Time{}
			continue
		case h.unseen.IsZero():
			h.unseen = d.Time
			continue
		case d.Time.Sub(h.unseen) < unseenFor:
			continue
		default:
			u.Why = phrase.Count(n, "SYN") + " of them " + phrase.Verb(n, "was", "were") + " dropped and no handshake was seen: addresses or ports are translated in this namespace (NAT), or the frames are of a kind that is not read"
			u.How = "clients behind a translation are seen where they connect to, not where they arrive; --handshakes=off leaves them out"
		}
		out = append(out, u)
	}
	return out
}

// droppedUnseen is the number of dropped SYNs of the interval, where the handshakes show
// nobody who had sent one.
func droppedUnseen(l *model.Listener) (n uint64) {
	if l.Losses == nil || l.Losses.Clients == nil {
		return 0
	}
	c := l.Losses.Clients
	if c.Observed <= 0 || c.WithoutRoom() > 0 || c.Outcomes[model.ClientHalfOpen] > 0 || c.Untracked > 0 || c.PacketsLost > 0 || c.Flood != nil {
		return 0
	}
	for _, d := range l.Losses.By {
		if d.Packet == model.PacketSYN && !d.Estimated {
			n += d.Packets
		}
	}
	return n
}

// sharesAddress reports whether a listener differs from another by its device only:
// which of them a client met does not show.
func sharesAddress(s *model.Snapshot, l *model.Listener) bool {
	if !l.Listening() {
		return false
	}
	return slices.ContainsFunc(s.Listeners, func(other model.Listener) bool {
		return other.Listening() && other.ID.NetNS == l.ID.NetNS && other.ID.Address == l.ID.Address && other.ID.Device != l.ID.Device
	})
}
