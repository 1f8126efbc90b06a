package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// askAll dumps the listeners, and once more when a watched one is not among
// them: inet_diag goes on with a dump by position in the bucket
// (inet_diag_dump_icsk), so that one that closes between two messages of a dump
// hides the one behind it.
func (sp *space) askAll() error {
	if err := sp.fast.Listeners(sp.take); err != nil || !sp.misses() {
		return err
	}
	return sp.fast.Listeners(sp.take)
}

// takeListener is askAll's callback; like answered it is made a value once: a
// closure a tick would be garbage a tick.
func (sp *space) takeListener(l *sockdiag.Listener) error {
	if m := sp.member(l.Inode); m != nil && !m.seen {
		sp.moved = m.observe(l) || sp.moved
	}
	return nil
}

// collect dumps all listeners with their drop counters, unwatched ones too.
func (sp *space) collect() error {
	for range 2 { // see askAll
		sp.unsee()
		sp.forget()
		if err := sp.fast.Listeners(sp.gather); err != nil {
			return err
		}
		if !sp.misses() {
			break
		}
	}
	return nil
}

// gatherListener is collect's callback. Whoever is listed listens, though a
// sample may have found it gone: a server can stop listening and start again on
// the same socket.
func (sp *space) gatherListener(l *sockdiag.Listener) error {
	if m := sp.member(l.Inode); m != nil {
		m.seen = true
		if m.gone {
			m.observe(l)
		}
	}
	sp.found = append(sp.found, *l)
	d := losses.SocketDrops{ID: sp.listenerID(&l.ListenerID), Inode: l.Inode, Drops: l.Drops}
	d.Watched = sp.watching(l.Inode, d.ID)
	sp.sockets = append(sp.sockets, d)
	return nil
}

// forget is also called when the kernel cuts a dump short and it starts again.
func (sp *space) forget() {
	sp.sockets, sp.found = sp.sockets[:0], sp.found[:0]
}

// member is who has this socket, nil when it is not watched.
func (sp *space) member(inode uint32) *member {
	p, ok := sp.byInode[inode]
	if !ok {
		return nil
	}
	return &sp.watches[p.watch].members[p.member]
}

func (sp *space) unsee() {
	for i := range sp.watches {
		sp.watches[i].unsee()
	}
}

// misses tells whether a look has not seen a listener that is not known to be
// gone.
func (sp *space) misses() bool {
	for i := range sp.watches {
		if sp.watches[i].misses() {
			return true
		}
	}
	return false
}

// miss notes that those have closed.
func (sp *space) miss(now time.Time) (closed bool) {
	for i := range sp.watches {
		closed = sp.watches[i].miss(now, sp.migrates) || closed
	}
	return closed
}
