package losses

import (
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// maxSpells bounds what is kept of a listener that flaps: the two oldest become one.
	maxSpells = 16

	// repeatedFor is how long after a trouble the clients that it turned away may still
	// repeat what they sent: with net.ipv4.tcp_syn_retries at 6 a SYN for 127 s
	// (tcp_write_timeout), a FIN whose socket the client has closed for less.
	repeatedFor = 130 * time.Second
	// passing is how long the queue may have been full when such a packet is dropped: they
	// come many at a time into an empty queue, since they were sent first at the same time.
	passing = 200 * time.Millisecond
	// fewer of them come within a second than that part of what the trouble dropped within
	// one, or than negligible is.
	latePart   = 4
	negligible = 3
)

// spell is a time in which something was lost, without model.Quiet in between.
type spell struct {
	began, ended time.Time // of the first and the last loss
	// What had been lost before.
	dropped map[model.DropKey]drops
	packets uint64
	resets  uint64

	most uint64 // packets within a second
	late uint64 // after it, of clients that it had turned away
}

// spells are those of one listener in the last quarter of an hour, the oldest first.
type spells struct {
	list []spell

	// Packets in the second that is being counted.
	second  time.Time
	packets uint64

	full time.Time // since when the queue is full, zero while it is not
}

// sampled takes a sample of the queue.
func (s *spells) sampled(q Queue) {
	switch {
	case !q.Full():
		s.full = time.Time{}
	case s.full.IsZero():
		s.full = q.At
	}
}

// lost is called before a loss is booked.
func (s *spells) lost(at time.Time, l *ledger) {
	s.expire(at)
	n := len(s.list)
	if n == 0 || at.Sub(s.list[n-1].ended) > model.Quiet {
		s.list = append(s.list, spell{began: at, dropped: maps.Clone(l.dropped), packets: l.packets(), resets: l.queueResets})
	}
	last := &s.list[len(s.list)-1]
	last.ended = at
	last.most = max(last.most, s.packets)
	if len(s.list) > maxSpells {
		s.list[0].ended = s.list[1].ended
		s.list = slices.Delete(s.list, 1, 2)
	}
}

// count takes packets that are dropped now into those of this second.
func (s *spells) count(at time.Time, packets uint64) {
	if at.Sub(s.second) >= time.Second {
		s.second, s.packets = at, 0
	}
	s.packets += packets
}

// expire forgets those that ended too long ago.
func (s *spells) expire(now time.Time) {
	s.list = slices.DeleteFunc(s.list, func(old spell) bool { return now.Sub(old.ended) > model.RecentFor })
}

// repeated reports whether packets that are dropped now, and counted, may be repeated ones
// of clients that were turned away before: a trouble lasts, or ended not long ago, they are
// few beside what it dropped, and the queue that they met was full for a moment. Whoever
// waits in front of a full queue, or comes in a burst like that one, is a new trouble.
func (s *spells) repeated(at time.Time) bool {
	if len(s.list) == 0 {
		return false
	}
	last := &s.list[len(s.list)-1]
	return at.Sub(last.ended) <= repeatedFor && (s.full.IsZero() || at.Sub(s.full) <= passing) &&
		s.packets <= max(last.most/latePart, negligible)
}

// late reports whether repeated packets come when the trouble is over. All together they
// are no more than it dropped within a second.
func (s *spells) late(at time.Time, packets uint64) bool {
	last := &s.list[len(s.list)-1]
	if at.Sub(last.ended) <= model.Quiet || last.late+packets > max(last.most, negligible) {
		return false
	}
	last.late += packets
	return true
}

// since is what was dropped after the first of them began, by cause.
func (s *spells) since(first *spell, l *ledger) map[model.Cause]uint64 {
	out := make(map[model.Cause]uint64)
	for key, d := range l.dropped {
		if n := d.packets - first.dropped[key].packets; n > 0 {
			out[key.Cause] += n
		}
	}
	return out
}

// cause is that of the latest, with what it rests on.
func (s *spells) cause(l *ledger) (c model.Cause, e model.Evidence) {
	c = model.Dominant(s.since(&s.list[len(s.list)-1], l))
	if c == model.CauseNone || c == model.CauseSynBacklog { // of other packets
		return model.CauseAcceptQueue, model.EvidenceNone
	}
	var most uint64
	for key, d := range l.dropped {
		if key.Cause == c && d.packets > most {
			most, e = d.packets, d.evidence
		}
	}
	return c, e
}

// Recent is what was lost in the last quarter of an hour; nil for nothing.
func (a *Account) Recent(now time.Time) *model.Recent {
	s, l := &a.spells, &a.ledger
	s.expire(now)
	if len(s.list) == 0 {
		return nil
	}
	first, last := &s.list[0], &s.list[len(s.list)-1]
	out := &model.Recent{
		Began: first.began, Ended: last.ended, Latest: last.began, Over: now.Sub(last.ended) >= model.Quiet,
		Packets: l.packets() - first.packets, QueueResets: l.queueResets - first.resets,
		Cause: model.Dominant(s.since(first, l)),
	}
	switch {
	case out.Cause != model.CauseNone:
	case out.Packets > 0: // the cause is being read
		out.Cause = model.CauseAcceptQueue
	default:
		out.Cause = model.CauseListenerClosed
	}
	return out
}

// Queue is one sample of an accept queue.
type Queue struct {
	At      time.Time
	Length  uint32
	Limit   uint32
	FullFor time.Duration // of the time since the sample before
}

// Full says that the next SYN or final ACK is dropped.
func (q Queue) Full() bool { return model.QueueFull(q.Length, q.Limit) }

// Ratio is 1.0 for a full queue.
func (q Queue) Ratio() float64 { return model.QueueRatio(q.Length, q.Limit) }
