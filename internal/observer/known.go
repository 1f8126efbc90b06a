package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

const (
	// walkRest is how long exact requests may take the place of a walk, which alone
	// counts what is in TIME_WAIT: half of TCP_TIMEWAIT_LEN.
	walkRest = 30 * time.Second
	// walkPart is the part of a core that such a walk may take: one through a million
	// sockets waits for longer, twice walkRest at most.
	walkPart = 0.008
	// askCost is the least that an exact request for one connection is taken to cost (1.3
	// to 1.9 µs were measured), and askPart the part of a walk's cost that all of
	// them may take in its place. A walk that takes less than cheap is always made.
	askCost = 2 * time.Microsecond
	askPart = 0.25
	cheap   = time.Millisecond
	// mostKnown and mostOutgoing bound the connections of a namespace that are
	// remembered, at 88 bytes each.
	mostKnown    = 16_384
	mostOutgoing = 4096
)

// known are the connections that the latest walk of a namespace has found. As long
// as no other one has come they can be asked for exactly, which costs what is
// watched and not what the host has.
type known struct {
	at     time.Time // of the walk; zero while not all are remembered
	cost   time.Duration
	opened uint64 // when it began
	ids    []sockdiag.ConnectionID
	// outgoing are those whose local port nobody watches, whole if the walk took
	// them along.
	outgoing []sockdiag.ConnectionID
	whole    bool
	beyond   bool          // there are more of the watched than are remembered
	crowded  bool          // and of the outgoing ones
	each     time.Duration // what an exact request took lately
}

// begin forgets all for another walk.
func (k *known) begin() {
	*k = known{ids: k.ids[:0], outgoing: k.outgoing[:0], each: k.each}
}

// add remembers a connection, of a watched port or an outgoing one. What is in
// TIME_WAIT does nothing any more.
func (k *known) add(s *sockdiag.Socket, watched bool) {
	list, beyond, most := &k.ids, &k.beyond, mostKnown
	if !watched {
		list, beyond, most = &k.outgoing, &k.crowded, mostOutgoing
	}
	switch {
	case s.State == sockdiag.TimeWait || *beyond:
	case s.Cookie == 0 || len(*list) >= most:
		*beyond = true
	default:
		*list = append(*list, s.ID())
	}
}

// walked takes note of a walk that went through the whole table. t is from before
// it.
func (k *known) walked(at time.Time, t namespace.Turnover, cost time.Duration, outgoing bool) {
	if !t.Known || k.beyond {
		k.begin()
		return
	}
	k.at, k.cost, k.opened, k.whole = at, cost, t.Opened, outgoing && !k.crowded
	if k.crowded {
		k.outgoing = k.outgoing[:0]
	}
}

// serves reports whether exact requests show all that a walk would: no connection
// has come since the latest, and they are cheaper.
func (k *known) serves(now time.Time, t namespace.Turnover, outgoing bool) bool {
	if k.at.IsZero() || now.Sub(k.at) >= k.rest() || !t.Known || t.Opened != k.opened || outgoing && !k.whole {
		return false
	}
	return k.cost >= cheap && time.Duration(k.number(outgoing))*max(askCost, k.each) < time.Duration(askPart*float64(k.cost))
}

func (k *known) rest() time.Duration { return min(rest(k.cost, walkRest, walkPart), 2*walkRest) }

func (k *known) number(outgoing bool) int {
	if outgoing {
		return len(k.ids) + len(k.outgoing)
	}
	return len(k.ids)
}

// ask asks for the connections; found is not called for those that have ended.
func (k *known) ask(n *namespace.Namespace, outgoing bool, found func(*sockdiag.Socket)) error {
	answer := func(_ int, s *sockdiag.Socket, err error) {
		if err == nil {
			found(s)
		}
	}
	cost, err := cputime.Of(func() error {
		if err := n.Connections(k.ids, answer); err != nil || !outgoing {
			return err
		}
		return n.Connections(k.outgoing, answer)
	})
	k.each = cost / time.Duration(max(1, k.number(outgoing)))
	return err
}
