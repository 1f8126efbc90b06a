package namespace

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// watch is what the samples know of one listening address. With SO_REUSEPORT
// several sockets stand behind it, and the fullest counts.
type watch struct {
	account *losses.Account
	members []member
	queue   losses.Queue // of the latest sample; its time is zero before the first
	worst   int          // the member it is of
	moved   time.Time    // when its drop counter last moved
	full    time.Time    // since when the queue is full, zero while it is not
	stands  time.Time    // since when no sample found it empty, zero while it is
	active  time.Time    // when a sample last found anything but an empty queue, or it came behind a pause
	taken   uint64       // clients that were accepted from it between two samples: a lower bound
	fell    time.Time    // when a sample last found the queue of a member shorter: somebody was accepted
	still   time.Time    // since when none has, nor found it empty, nor came late; zero while it is empty
}

type member struct {
	ask      sockdiag.ListenerID
	inode    uint32
	drops    uint32
	hasDrops bool
	length   uint32
	limit    uint32
	seen     bool // in the sample under way
	reply    reply
	replied  bool // reply has yet to be taken in
	closed   bool // since the latest dump
	fell     bool // its queue has become shorter since the latest sample

	doubted  bool // the latest reply was not believed
	shadowed bool // the exact request does not find it; no longer asked until the next watchlist
	suspect  bool // it was so before the latest watchlist
}

// reply is what is used of one.
type reply struct {
	recvQ, sendQ, drops uint32
	hasDrops            bool
}

// hear notes a member's reply.
func (m *member) hear(l *sockdiag.Listener) {
	m.reply, m.replied, m.seen = reply{l.RecvQ, l.SendQ, l.Drops, l.HasDrops}, true, true
}

// take takes it in, and reports whether the drop counter moved.
func (m *member) take() (moved bool) {
	moved = m.replied && m.observe(m.reply)
	m.replied = false
	return moved
}

// observe takes a member's reply and reports whether its drop counter moved.
//
// One that closes just then still says LISTEN, and both queues are 0: inet_diag
// reads the state once for the reply and once more for the queues, and only a
// listener has them. A client that waited in the queue is about to be reset, and must be
// counted: what was known stands for one more sample.
//
// sk_ack_backlog falls with accept(2) alone, and when the socket closes: a client that resets stays in it until it is
// accepted (tcp_reset leaves the queue as it is).
func (m *member) observe(r reply) (moved bool) {
	moved = r.hasDrops && r.drops != m.drops
	again := m.closed
	m.drops, m.hasDrops, m.closed = r.drops, r.hasDrops, false
	m.doubted = !m.doubted && m.limit > 0 && r.sendQ == 0 && r.recvQ == 0
	if !m.doubted {
		m.fell = m.fell || !again && r.recvQ < m.length && (r.sendQ > 0 || m.limit == 0)
		m.length, m.limit = r.recvQ, r.sendQ
	}
	return moved
}

// take takes in what was heard, and reports whether a drop counter moved.
func (w *watch) take(now time.Time) (moved bool) {
	for i := range w.members {
		moved = w.members[i].take() || moved
	}
	if moved {
		w.moved, w.active = now, now
		w.account.Moved(now)
	}
	return moved
}

// sampled folds the members' replies into one sample of the address at time now,
// and reports whether its queue has become full. A gap between two samples counts
// as full when the queue was full at both of its ends, and then for at most
// gapLimit of it.
func (w *watch) sampled(now time.Time, gapLimit time.Duration) (filled bool) {
	last := w.queue
	w.fold()
	w.queue.At = now
	switch {
	case !w.queue.Full():
		w.full = time.Time{}
	case w.full.IsZero():
		w.full, filled = now, true
	}
	switch {
	case w.queue.Length == 0:
		w.stands = time.Time{}
	case w.stands.IsZero():
		w.stands = now
	}
	if w.queue.Length > 0 {
		w.active = now
	}
	w.stood(now, now.Sub(last.At) > gapLimit)
	if !last.At.IsZero() && len(w.members) == 1 && last.Length > w.queue.Length {
		w.taken += uint64(last.Length - w.queue.Length)
	}
	if !last.At.IsZero() && last.Full() && w.queue.Full() {
		w.queue.FullFor = min(now.Sub(last.At), gapLimit)
	}
	w.account.Observe(w.queue)
	return filled
}

// stood notes whether a sample found that somebody was accepted. late: of the time before it nothing is known.
func (w *watch) stood(now time.Time, late bool) {
	fell := false
	for i := range w.members {
		fell = fell || w.members[i].fell
		w.members[i].fell = false
	}
	if fell {
		w.fell = now
	}
	switch {
	case w.queue.Length == 0:
		w.still = time.Time{}
	case fell || late || w.still.IsZero():
		w.still = now
	}
}

// fold picks the fullest member.
func (w *watch) fold() {
	most := -1.0
	for i := range w.members {
		m := &w.members[i]
		q := losses.Queue{At: w.queue.At, Length: m.length, Limit: m.limit}
		if r := q.Ratio(); m.seen && r > most {
			most, w.queue, w.worst = r, q, i
		}
	}
}

// drops sums those of its sockets; known is false on a kernel that does not report
// them.
func (w *watch) drops() (sum uint64, known bool) {
	for i := range w.members {
		if !w.members[i].hasDrops {
			return 0, false
		}
		sum += uint64(w.members[i].drops)
	}
	return sum, true
}

// alone reports whether an exact request finds it: it shares its address with nobody.
func (w *watch) alone() bool { return len(w.members) == 1 && !w.members[0].shadowed }

func (w *watch) resetSeen() {
	for i := range w.members {
		w.members[i].seen, w.members[i].replied = false, false
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
		if !w.members[i].seen && !w.members[i].closed {
			return true
		}
	}
	return false
}

// closed reports whether none of its sockets listens any more.
func (w *watch) closed() bool {
	for i := range w.members {
		if !w.members[i].closed {
			return false
		}
	}
	return true
}

// miss notes that the sockets which a dump does not have are closed, and reports
// whether there are any. A client that waited in their queues was reset by the kernel
// (inet_csk_listen_stop), unless it migrates: with net.ipv4.tcp_migrate_req=1
// it moves them to another member (reuseport_migrate_sock). Whom that one has
// no room for is reset as well, and not known.
func (w *watch) miss(now time.Time, migrates bool) (closed bool) {
	queued := 0
	for i := range w.members {
		if m := &w.members[i]; !m.seen && !m.closed {
			m.closed, m.shadowed, closed = true, false, true
			queued += int(m.length)
		}
	}
	part := !w.closed()
	if !closed || part && migrates {
		return closed
	}
	if !part {
		w.account.Close()
	}
	w.account.ResetQueue(losses.Departure{Queued: queued, At: now, Part: part})
	return true
}

// close notes that all its sockets have closed.
func (w *watch) close(now time.Time) {
	w.resetSeen()
	w.miss(now, false)
}

// inherit carries the samples over, so that a new watchlist makes no gap in the
// seconds full.
func (w *watch) inherit(old *watch) {
	if w.account == old.account {
		w.queue, w.worst, w.moved, w.full = old.queue, min(old.worst, len(w.members)-1), old.moved, old.full
		w.stands, w.taken, w.active = old.stands, old.taken, old.active
		w.fell, w.still = old.fell, old.still
	}
}

// inherit carries over what the watchlist's dump does not show: that it has closed
// since, as the dump itself calls back who listens.
func (m *member) inherit(old *member) {
	m.closed, m.suspect = old.closed, old.shadowed
	m.fell = old.fell || !old.closed && m.length < old.length
}
