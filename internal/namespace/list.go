package namespace

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Listed is a LISTEN socket with its name.
type Listed struct {
	ID model.ListenerID
	sockdiag.Listener
}

// List takes a checkpoint of the namespace and returns its listeners; only its
// listeners where nothing is watched and it was not asked for.
func (n *Namespace) List(now time.Time) ([]Listed, error) {
	n.readDevices(now)
	list, err := n.list(now)
	if err == nil && n.unnamed() { // now it is known which names are needed
		n.readDevices(now)
		list, err = n.list(now)
	}
	return list, err
}

func (n *Namespace) unnamed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.facts.unnamed
}

func (n *Namespace) list(now time.Time) ([]Listed, error) {
	n.shared.turn.Lock()
	defer n.shared.turn.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	if !n.idle() {
		if err := n.checkpoint(now, n.apart); err != nil {
			return nil, err
		}
		return listedIn(&n.dump), nil
	}
	rest(n)
	if err := n.dumpAll(n.apart); err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.takeDump()
	n.mu.Unlock()
	return listedIn(&n.dump), nil
}

// rest closes what is not needed where nothing is watched, unless a walk is
// still under way.
func rest(n *Namespace) {
	if n.walking.TryLock() {
		defer n.walking.Unlock()
		n.mu.Lock()
		n.books.Reset()
		n.mu.Unlock()
		_ = n.kernel.Rest() // nothing can be done about it
	}
}

// listedIn are the listeners of a dump.
func listedIn(d *dump) []Listed {
	out := make([]Listed, len(d.found))
	for i := range out {
		out[i] = Listed{d.sockets[i].ID, d.found[i]}
	}
	return out
}

// Follow makes sure that the counters are followed from now on.
func (n *Namespace) Follow(now time.Time) error {
	n.shared.turn.Lock()
	defer n.shared.turn.Unlock()
	n.mu.Lock()
	followed := n.books.Open()
	n.mu.Unlock()
	if followed {
		return nil
	}
	return n.checkpoint(now, n.apart)
}

// Listening is an address that is to be watched.
type Listening struct {
	ID      model.ListenerID
	Members []sockdiag.Listener
}

// Watch gives the samples the listeners of a watchlist; now is when it was listed.
func (n *Namespace) Watch(now time.Time, list []Listening) {
	n.shared.turn.Lock()
	defer n.shared.turn.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	next := make([]watch, 0, len(list))
	watched := make(map[*losses.Account]bool, len(list))
	for i := range list {
		a := n.books.Account(list[i].ID)
		watched[a] = true
		next = append(next, newWatch(a, list[i].Members))
	}
	n.books.Dismiss(func(a *losses.Account) bool { return watched[a] || !n.listed(a.ID) && !a.Unwatched() })
	if n.watches.replace(now, next, n.stands, n.facts.migrates()) {
		if now.Sub(n.came) > calmAfter { // else somebody comes all the time, and may be calm
			n.active = now
			n.watches.wake(now, false)
		}
		n.came = now
	}
}

func newWatch(a *losses.Account, members []sockdiag.Listener) watch {
	w := watch{account: a, members: make([]member, len(members))}
	for i := range members {
		w.members[i].ask, w.members[i].inode = members[i].ListenerID, members[i].Inode
		w.members[i].hear(&members[i])
		w.members[i].take()
	}
	w.fold()
	return w
}

// Unread is how many listeners the latest list has left out, as there are too many.
func (n *Namespace) Unread() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.facts.unread
}

// Troubled reports whether a watched listener drops packets or has a full queue,
// or did after since.
func (n *Namespace) Troubled(since time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.watches.list {
		if w := &n.watches.list[i]; !w.full.IsZero() || w.moved.After(since) {
			return true
		}
	}
	return false
}

// Queued reports whether clients wait in an accept queue that a namespace watches.
func Queued(n *Namespace) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.watches.queued()
}

// Watches reports whether anything is watched.
func (n *Namespace) Watches() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.watches.list) > 0
}

// Watched are the listeners that are watched.
func (n *Namespace) Watched() []model.ListenerID {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]model.ListenerID, len(n.watches.list))
	for i := range n.watches.list {
		out[i] = n.watches.list[i].account.ID
	}
	return out
}

// Answers reports whether the latest samples were answered.
func (n *Namespace) Answers() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fast.failures < redialAfter
}

// checkpoint reads the namespace's counters first, then its listeners, with the
// drops since the last time attributed. The turn holds off the samples: the
// counters must not be read, and attributed, out of order.
func (s *sampler) checkpoint(now time.Time, sockets reading) error {
	counters := s.counters
	clear(counters)
	var c netstat.ListenCounters
	torn, err := s.readDrops(&c, func(c *netstat.ListenCounters) error {
		if err := s.kernel.Counters(counters); err != nil {
			return err
		}
		*c = netstat.ListenCounters{
			ListenDrops: counters["ListenDrops"], ListenOverflows: counters["ListenOverflows"],
			ReqQFullDrop: counters["TCPReqQFullDrop"], ReqQFullDoCookies: counters["TCPReqQFullDoCookies"],
			SyncookiesRecv: counters["SyncookiesRecv"],
		}
		return nil
	}, sockets)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeListed(now)
	s.takeDump()
	s.watches.miss(now, s.facts.migrates()) // before the checkpoint: it belongs there
	s.books.Tick(now, counts(c, torn), s.dump.sockets)
	s.books.Checkpoint(now, counters)
	return nil
}
