package namespace

import (
	"slices"
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// dump are the listeners of the latest LISTEN dump, and its callbacks: made
// values once, a closure a tick would be garbage a tick.
type dump struct {
	found   []sockdiag.Listener  // reused
	sockets []losses.SocketDrops // found, once it is known whose they are; likewise
	crowd   crowd
	there   int           // how many of found are in sockets
	cost    time.Duration // of CPU time, of the latest

	read    reading // of the dump under way
	pass    func() error
	forget  func()
	collect func(*sockdiag.Listener) error
	take    func(*sockdiag.Listener) error
}

// dumpWatched dumps the listeners for a sample, and once more when a watched one
// is not among them: inet_diag continues a dump by position in the bucket
// (inet_diag_dump_icsk), so that one that closes between two messages of a dump
// hides the one behind it.
func (s *sampler) dumpWatched() error {
	if err := s.kernel.Listeners(nil, s.dump.take); err != nil || !s.watches.misses() {
		return err
	}
	return s.kernel.Listeners(nil, s.dump.take)
}

// takeListener is dumpWatched's callback.
func (s *sampler) takeListener(l *sockdiag.Listener) error {
	if m := s.watches.member(l.Inode); m != nil && !m.seen {
		m.hear(l)
	}
	return nil
}

// expensive is a dump of some thousand listeners. Who has the turn meanwhile keeps the samples of all others waiting.
const expensive = time.Millisecond

// reading is how all listeners are read: Kernel.Listeners, or apart.
type reading func(restart func(), found func(*sockdiag.Listener) error) error

// apart reads all listeners beside the samples, also those of this namespace, where a dump is expensive or none was made
// yet. It is for the list alone: two would share what is dumped.
func (n *Namespace) apart(restart func(), found func(*sockdiag.Listener) error) error {
	if n.dump.cost > 0 && n.dump.cost < expensive {
		return n.kernel.Listeners(restart, found)
	}
	n.shared.turn.Unlock()
	defer n.shared.turn.Lock()
	return n.kernel.ListenersApart(restart, found)
}

// dumpAll dumps all listeners with their drop counters, unwatched ones too.
func (s *sampler) dumpAll(read reading) (err error) {
	s.dump.read = read
	s.dump.crowd.most = s.crowds.most(s.id)
	defer func() {
		s.crowds.note(s.id, s.dump.crowd.total)
		s.dump.crowd.end()
	}()
	for range 2 { // see dumpWatched
		s.dump.forget()
		if s.dump.cost, err = s.fast.cost(s.dump.pass); err != nil {
			return err
		}
		s.mark()
		if !s.watches.misses() {
			break
		}
	}
	return nil
}

// collectListener is dumpAll's callback. Of too many those are left out that are neither watched nor asked for. Samples may be
// made meanwhile (apart): it writes nothing that is theirs.
func (s *sampler) collectListener(l *sockdiag.Listener) error {
	admitted := s.dump.crowd.admits(l.UID, len(s.dump.found)) || s.watches.member(l.Inode) != nil
	if admitted || s.dump.crowd.asked < mostAsked && s.expects(model.ListenerID{NetNS: s.id, Address: l.Address()}) {
		if !admitted {
			s.dump.crowd.asked++
		}
		s.dump.found = append(s.dump.found, *l)
	}
	return nil
}

// mark notes who is in the dump. What is listed listens, though a sample may have found it closed: a server can stop
// listening and start again on the same socket.
func (s *sampler) mark() {
	s.watches.resetSeen()
	for i := range s.dump.found {
		l := &s.dump.found[i]
		p, ok := s.watches.byInode[l.Inode]
		if !ok {
			continue
		}
		w := &s.watches.list[p.watch]
		m := &w.members[p.member]
		if m.seen = true; m.closed || s.samplesByList(w) {
			m.hear(l)
		}
	}
}

// samplesByList reports whether the samples of a listener are those of the lists: it takes a dump for them, and one takes too long.
func (s *sampler) samplesByList(w *watch) bool { return s.dump.cost >= tooLong && !w.alone() }

// takeListed makes the samples of such listeners.
func (s *sampler) takeListed(now time.Time) {
	for i := range s.watches.list {
		if w := &s.watches.list[i]; s.samplesByList(w) && w.anySeen() {
			s.fast.listed.Dropped = w.take(now) || s.fast.listed.Dropped
			s.fast.listed.Filled = w.sampled(now, s.fast.gapLimit) || s.fast.listed.Filled
		}
	}
}

// takeDump takes in what dumpAll has found.
func (s *sampler) takeDump() {
	for i := range s.watches.list {
		w := &s.watches.list[i]
		for m := range w.members {
			w.members[m].take()
		}
	}
	s.dump.sockets = s.dump.sockets[:0]
	s.dump.there = len(s.dump.found)
	s.facts.unread = s.dump.crowd.total - len(s.dump.found)
	s.facts.bound = s.facts.bound[:0]
	for i := range s.dump.found {
		l := &s.dump.found[i]
		d := losses.SocketDrops{ID: s.name(&l.ListenerID), Inode: l.Inode, Drops: l.Drops}
		d.Watched = s.watching(l.Inode, d.ID)
		s.dump.sockets = append(s.dump.sockets, d)
	}
}

// onePass is one pass of dumpAll.
func (s *sampler) onePass() error { return s.dump.read(s.dump.forget, s.dump.collect) }

// forgetListeners is also called when the kernel cuts a dump short and it starts
// again.
func (s *sampler) forgetListeners() {
	s.dump.found = s.dump.found[:0]
	s.dump.crowd.begin()
}

// stands reports whether a socket is in the latest dump.
func (s *sampler) stands(inode uint32) bool {
	return slices.ContainsFunc(s.dump.found, func(l sockdiag.Listener) bool { return l.Inode == inode })
}

// watching reports whether a listener's drops are its account's: it is watched,
// or it is the same address under a new inode, or it is sure to be watched at
// the next watchlist.
func (s *sampler) watching(inode uint32, id model.ListenerID) bool {
	if _, ok := s.watches.byInode[inode]; ok {
		return true
	}
	if watched, known := s.books.Watching(id); known {
		return watched
	}
	return s.expects(id)
}

// listed reports whether an address is in the latest dump.
func (s *sampler) listed(id model.ListenerID) bool {
	return slices.ContainsFunc(s.dump.sockets, func(d losses.SocketDrops) bool { return d.ID == id })
}

// mostBound is how many interfaces of a namespace have names.
const mostBound = 256

// name is the address as people know it, v4-mapped ones unmapped. An interface
// that is not known yet is called by its index: the sample path asks for nothing.
func (s *sampler) name(l *sockdiag.ListenerID) model.ListenerID {
	id := model.ListenerID{NetNS: s.id, Address: l.Address()}
	if l.Interface == 0 {
		return id
	}
	if len(s.facts.bound) < mostBound && !slices.Contains(s.facts.bound, l.Interface) {
		s.facts.bound = append(s.facts.bound, l.Interface)
	}
	name, ok := s.facts.devices[l.Interface]
	if !ok {
		s.facts.unnamed = true
		name = strconv.FormatUint(uint64(l.Interface), 10)
	}
	id.Device = name
	return id
}
