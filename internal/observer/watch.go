package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// watch is what the fast loop knows of one listening address. With
// SO_REUSEPORT several sockets stand behind it, and the fullest counts.
type watch struct {
	account *account
	members []member
	at      time.Time // of the last sample, zero before the first
	length  uint32
	limit   uint32
}

type member struct {
	ask    sockdiag.ListenerID
	inode  uint32
	drops  uint32
	length uint32
	limit  uint32
	seen   bool // in the look under way
	gone   bool // since the latest dump

	doubted  bool // the latest reply was not believed
	shadowed bool // the exact request does not find it; no longer asked until the next scan
	suspect  bool // it was so before the latest scan
}

// observe takes a member's reply and tells whether its drop counter moved.
//
// One that closes just then still says LISTEN, and both queues are 0: inet_diag
// reads the state once for the reply and once more for the queues, and only a
// listener has them. Whoever stood in the queue is about to be reset, and must be
// counted: what was known stands for one more look.
func (m *member) observe(l *sockdiag.Listener) (moved bool) {
	moved = l.HasDrops && l.Drops != m.drops
	m.drops, m.seen, m.gone = l.Drops, true, false
	m.doubted = !m.doubted && m.limit > 0 && l.SendQ == 0 && l.RecvQ == 0
	if !m.doubted {
		m.length, m.limit = l.RecvQ, l.SendQ
	}
	return moved
}

// sampled folds the members' replies into one sample of the address at time
// now. A gap between two samples counts as full when the queue was full at
// both of its ends, and then for at most gapLimit of it.
func (w *watch) sampled(now time.Time, gapLimit time.Duration) {
	wasFull := !w.at.IsZero() && full(w.length, w.limit)
	w.fold()
	if wasFull && full(w.length, w.limit) {
		w.account.fullTime += min(now.Sub(w.at), gapLimit)
	}
	w.at = now
	w.account.peaks.observe(now, w.length)
	w.account.fill.Observe(ratio(w.length, w.limit))
}

// fold picks the fullest member.
func (w *watch) fold() {
	worst := -1.0
	for i := range w.members {
		m := &w.members[i]
		if r := ratio(m.length, m.limit); m.seen && r > worst {
			worst, w.length, w.limit = r, m.length, m.limit
		}
	}
}

func (w *watch) unsee() {
	for i := range w.members {
		w.members[i].seen = false
	}
}

func (w *watch) anySeen() bool {
	for i := range w.members {
		if w.members[i].seen {
			return true
		}
	}
	return false
}

func (w *watch) misses() bool {
	for i := range w.members {
		if !w.members[i].seen && !w.members[i].gone {
			return true
		}
	}
	return false
}

// gone tells whether none of its sockets listens any more.
func (w *watch) gone() bool {
	for i := range w.members {
		if !w.members[i].gone {
			return false
		}
	}
	return true
}

// miss notes that the sockets which a look has not seen have closed, and tells
// whether there are any. Whoever stood in their queues was reset by the kernel
// (inet_csk_listen_stop), unless it migrates: with net.ipv4.tcp_migrate_req=1
// it moves them to another member (reuseport_migrate_sock). Whom that one has
// no room for is reset as well, and not known.
func (w *watch) miss(now time.Time, migrates bool) (closed bool) {
	var queued uint64
	for i := range w.members {
		if m := &w.members[i]; !m.seen && !m.gone {
			m.gone, m.shadowed, closed = true, false, true
			queued += uint64(m.length)
		}
	}
	part := !w.gone()
	if !closed || part && migrates {
		return closed
	}
	if !part {
		w.account.close()
	}
	w.account.ledger.resetQueue(queued)
	if queued > 0 {
		w.account.closed = departure{queued: int(queued), at: now, part: part}
	}
	return true
}

// vanish notes that all its sockets have closed.
func (w *watch) vanish(now time.Time) {
	w.unsee()
	w.miss(now, false)
}

// full mirrors sk_acceptq_is_full: more than the backlog.
func full(length, limit uint32) bool { return length > limit }

// ratio is 1.0 for a full queue: it holds limit + 1.
func ratio(length, limit uint32) float64 { return float64(length) / (float64(limit) + 1) }
