package downstream

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// MaxPeers is how many peers of a process are named; the rest is summed.
const MaxPeers = 20

// MaxKnown bounds the peers that are counted at all.
const maxKnown = 1000

// peerCounts counts the connections to one peer.
type peerCounts struct {
	model.Peer
	sum   time.Duration // of the ages in flight
	begun int           // requests since the reading before
}

// count sums the connections of a process by peer. elapsed is the time since the
// reading before, 0 for the first.
func count(list []Connection, m *Memory, elapsed time.Duration) (map[netip.AddrPort]*peerCounts, bool) {
	peers := make(map[netip.AddrPort]*peerCounts)
	partial := false
	for i := range list {
		c := &list[i]
		t := peers[c.Remote]
		if t == nil {
			if len(peers) >= maxKnown {
				partial = true
				continue
			}
			t = &peerCounts{Peer: model.Peer{Address: c.Remote}}
			peers[c.Remote] = t
		}
		t.add(c, m.flight(c, elapsed), m.since(c), elapsed)
	}
	return peers, partial
}

func (t *peerCounts) add(c *Connection, f Flight, connecting, elapsed time.Duration) {
	t.Connections++
	switch f {
	case InFlight:
		t.InFlight++
		t.Oldest = max(t.Oldest, c.Age)
		t.sum += c.Age
	case Connecting:
		t.Connecting++
		t.OldestConnect = max(t.OldestConnect, connecting)
		return
	case Unknown:
		t.Unknown++
	}
	if elapsed > 0 && c.Age < elapsed {
		t.begun++
	}
}

// ranked are the peers, those with most in flight first.
func ranked(peers map[netip.AddrPort]*peerCounts) []*peerCounts {
	out := make([]*peerCounts, 0, len(peers))
	for _, t := range peers {
		if t.InFlight > 0 {
			t.Mean = t.sum / time.Duration(t.InFlight)
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *peerCounts) int {
		return cmp.Or(
			cmp.Compare(b.InFlight+b.Connecting, a.InFlight+a.Connecting),
			cmp.Compare(b.Connections, a.Connections),
			a.Address.Compare(b.Address),
		)
	})
	return out
}

// rest sums the peers beyond the bound.
func rest(list []*peerCounts) *model.Peer {
	if len(list) == 0 {
		return nil
	}
	sum := &model.Peer{}
	for _, t := range list {
		sum.Connections += t.Connections
		sum.InFlight += t.InFlight
		sum.Unknown += t.Unknown
		sum.Connecting += t.Connecting
		sum.Oldest = max(sum.Oldest, t.Oldest)
		sum.OldestConnect = max(sum.OldestConnect, t.OldestConnect)
	}
	return sum
}
