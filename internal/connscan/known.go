package connscan

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

const (
	// walkRest is how long exact requests may take the place of a walk, which alone
	// counts what is in TIME_WAIT: half of TCP_TIMEWAIT_LEN. Where nothing is, a walk
	// would show nothing else, and is made after settledRest all the same.
	walkRest    = 30 * time.Second
	settledRest = 10 * time.Minute
	// walkPart is the part of a core that such a walk may take: one through a million
	// sockets waits for longer, twice walkRest at most.
	walkPart = 0.008
	// askCost is the least that an exact request for one connection is taken to cost (1.3
	// to 1.9 µs were measured), and askPart the part of a walk's cost that all of
	// them may take in its place. A walk that takes less than cheap is always made.
	askCost = 2 * time.Microsecond
	askPart = 0.5
	cheap   = time.Millisecond
	// mostKnown and mostOutgoing bound the connections of a namespace that are
	// remembered, at 88 bytes each.
	mostKnown    = 16_384
	mostOutgoing = 4096
	// sampleSize is how many connections of a port are asked for in place of all, where
	// there are twice as many at least. Where as many as newPart of them may have come
	// since the latest walk, it is time for another.
	subsetSize = 4096
	newPart    = 0.01
)

// known are the connections that the latest walk of a namespace has found. As long
// as no other one has come they can be asked for exactly, which costs what is
// watched and not what the host has.
type known struct {
	at      time.Time // of the walk; zero while none can be asked for
	counted time.Time // when all were last counted, by the walk or by exact requests
	cost    time.Duration
	before  namespace.Turnover // when it began
	watched reservoir
	// outgoing are those whose local port nobody watches, whole if the walk took
	// them along.
	outgoing connectionSet
	whole    bool
	each     time.Duration      // what an exact request took lately
	of       []model.ListenerID // whose connections are the watched ones
	most     int                // how many watched ones are remembered of the walk under way
}

// begin forgets all for another walk.
func (k *known) begin() {
	k.forget()
	if k.most = k.useful(mostKnown); k.watched.found > k.most && k.most < subsetSize {
		k.most, k.watched.ids = 0, nil // too few to stand for all
	}
	k.watched.begin()
	k.outgoing.begin(k.useful(mostOutgoing))
}

// setListeners forgets what is of other listeners than those: the walk has passed over theirs.
func (k *known) setListeners(of []model.ListenerID) {
	if !slices.Equal(k.of, of) {
		k.forget()
		k.of = of
	}
}

// forget has the next reading be a walk.
func (k *known) forget() { k.at = time.Time{} }

// useful is how many connections may be asked for in place of a walk that costs what
// the latest did: more are not worth their memory.
func (k *known) useful(most int) int {
	if k.cost == 0 {
		return most
	}
	return min(most, int(askPart*float64(k.cost)/float64(askCost)))
}

// add remembers a connection, of a watched port or an outgoing one. What is in
// TIME_WAIT does nothing any more.
func (k *known) add(s *sockdiag.Socket, watched bool) {
	switch {
	case s.State == sockdiag.TimeWait:
	case watched:
		k.watched.add(s, k.most)
	default:
		k.outgoing.add(s, k.useful(mostOutgoing))
	}
}

// walked takes note of a walk that went through the whole table. t is from before
// it.
func (k *known) walked(at time.Time, t namespace.Turnover, cost time.Duration, outgoing bool) {
	k.cost, k.counted = cost, at
	k.each -= k.each / 4 // what was measured once is not believed for ever
	if !t.Known || k.watched.unreadable {
		k.forget()
		return
	}
	k.at, k.before, k.whole = at, t, outgoing && !k.outgoing.beyond
}

// serves reports whether exact requests show all that a walk would: no connection
// has come since the latest, and they are cheaper. settled: no socket of the namespace is
// in TIME_WAIT.
func (k *known) serves(now time.Time, t namespace.Turnover, outgoing, settled bool) bool {
	if k.at.IsZero() || now.Sub(k.at) >= k.rest(settled) || !k.watched.whole() || !k.still(t) || outgoing && !k.whole {
		return false
	}
	return k.pays(k.number(outgoing))
}

// still reports whether no connection has come since the walk.
func (k *known) still(t namespace.Turnover) bool { return t.Known && t.Opened == k.before.Opened }

// pays reports whether asking for n connections takes less than the walk did.
func (k *known) pays(n int) bool {
	return k.cost >= cheap && time.Duration(n)*max(askCost, k.each) < time.Duration(askPart*float64(k.cost))
}

// subset chooses which connections to ask for in place of all, and says by port what they
// stand for: none where that is not enough, or takes no less.
func (k *known) subset(now time.Time, t namespace.Turnover) (ids []sockdiag.ConnectionID, of map[uint16]connections.Subset) {
	if k.at.IsZero() || now.Sub(k.counted) >= k.rest(false) || !t.Known || k.watched.largest() < 2*subsetSize {
		return nil, nil
	}
	added := int(t.Accepted - k.before.Accepted)
	ids, of = k.watched.pick(subsetSize, int(float64(added)/newPart), added)
	for _, s := range of {
		if s.Known >= 2*subsetSize && k.pays(len(ids)) {
			return ids, of
		}
	}
	return nil, nil
}

func (k *known) rest(settled bool) time.Duration {
	if settled {
		return settledRest
	}
	return min(cputime.Rest(k.cost, walkRest, walkPart), 2*walkRest)
}

func (k *known) number(outgoing bool) int {
	if outgoing {
		return len(k.watched.ids) + len(k.outgoing.ids)
	}
	return len(k.watched.ids)
}

// ask asks for the connections; found is not called for those that have ended.
func (k *known) ask(n *namespace.Namespace, outgoing bool, found func(*sockdiag.Socket)) error {
	return k.askOf(n, k.watched.ids, outgoing, found)
}

// askOf does so for a part of the watched ones.
func (k *known) askOf(n *namespace.Namespace, ids []sockdiag.ConnectionID, outgoing bool, found func(*sockdiag.Socket)) error {
	answer := func(_ int, s *sockdiag.Socket, err error) {
		if err == nil {
			found(s)
		}
	}
	number := len(ids)
	cost, err := cputime.Of(func() error {
		if err := n.Connections(ids, answer); err != nil || !outgoing {
			return err
		}
		number += len(k.outgoing.ids)
		return n.Connections(k.outgoing.ids, answer)
	})
	k.each = cost / time.Duration(max(1, number))
	return err
}

// connectionSet are the connections of one walk, as long as they are few.
type connectionSet struct {
	ids    []sockdiag.ConnectionID
	number int  // of all
	beyond bool // there are more than are remembered, or one that cannot be asked for
}

// begin begins another walk. Where the latest has found more than most none is
// remembered before they have become fewer.
func (f *connectionSet) begin(most int) {
	if f.beyond = f.number > most; f.beyond {
		f.ids = nil
	}
	f.ids, f.number = f.ids[:0], 0
}

func (f *connectionSet) add(s *sockdiag.Socket, most int) {
	f.number++
	switch {
	case f.beyond:
	case s.Cookie == 0 || f.number > most:
		f.beyond, f.ids = true, nil
	default:
		f.ids = append(f.ids, s.ID())
	}
}

// outgoingRest is how long a walk for the outgoing connections alone is relied on at most while nothing says
// that there is a new one: a socket that connects long after it was made is found then.
const outgoingRest = 5 * time.Minute

// knownOutgoing are the outgoing connections of a namespace's watched processes as the latest
// walk found them. While the processes hold no other socket there is no new one, and
// nobody has to go through a million of other connections for it.
type knownOutgoing struct {
	at          time.Time // of the walk; zero while not all is known
	cost        time.Duration
	connections []sockdiag.ConnectionID
	inodes      []uint32 // of all that the processes held except their clients' and listening sockets, ascending
}

// learn takes note of a walk of some cost that went through all outgoing connections:
// of the sockets that the processes hold, others are neither their clients' nor listening
// ones, and ascend.
func (o *knownOutgoing) learn(at time.Time, cost time.Duration, found []sockdiag.ConnectionID, sockets *ownedSockets, others []uint32) {
	if *o = (knownOutgoing{connections: found}); sockets.complete() {
		o.at, o.cost, o.inodes = at, cost, others
	}
}

// serves reports whether all outgoing connections of the processes are known.
func (o *knownOutgoing) serves(now time.Time, sockets *ownedSockets, others []uint32) bool {
	if o.at.IsZero() || now.Sub(o.at) >= min(cputime.Rest(o.cost, walkRest, outgoingPart), outgoingRest) || !sockets.complete() {
		return false
	}
	return !slices.ContainsFunc(others, func(inode uint32) bool { return !has(o.inodes, inode) })
}
