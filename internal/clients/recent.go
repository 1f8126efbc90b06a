package clients

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// trouble is when a listener began to lose something, and what its clients had come to.
type trouble struct {
	began  time.Time
	before model.ClientTotals
}

// away are the clients that were turned away lately, by what is decided: be it without a
// packet that was dropped.
type away struct {
	trouble
	last   time.Time          // when one was turned away; zero for never
	totals model.ClientTotals // as of the latest snapshot
	cause  model.Cause        // of the verdict then
}

// see takes what the clients have come to by now.
func (a *account) see(now time.Time, cause model.Cause) {
	w := &a.away
	before := w.totals
	w.totals = a.totals
	if a.turnedAway(before) == 0 {
		return
	}
	if w.last.IsZero() || now.Sub(w.last) > model.RecentFor {
		w.trouble, w.cause = trouble{now, before}, model.CauseNone
	}
	w.last = now
	if cause != model.CauseNone {
		w.cause = cause
	}
}

// turnedAway is how many there were since then. Where the server's first byte is no answer
// nobody is known to have been left without one.
func (a *account) turnedAway(since model.ClientTotals) uint64 {
	t := a.totals.Sub(since)
	n := t.TurnedAway()
	if !a.plain {
		n -= t.Answers.Unanswered
	}
	return n
}

// recentAway is the trouble of clients of which no packet was dropped; nil where there is none.
func (a *account) recentAway(now time.Time) *model.Recent {
	w := &a.away
	if w.last.IsZero() || now.Sub(w.last) > model.RecentFor {
		return nil
	}
	return &model.Recent{
		Began: w.began, Ended: w.last, Latest: w.began, Over: now.Sub(w.last) >= model.Quiet,
		ClientsTurnedAway: new(a.turnedAway(w.before)), Cause: w.cause,
	}
}

// recent is a listener's trouble of the last quarter of an hour, with how many clients
// were turned away in it where the handshakes were followed from its beginning.
func (a *account) recent(l *model.Listener, now, opened time.Time) *model.Recent {
	a.see(now, l.Verdict.Cause)
	r := l.Recent
	if r == nil {
		a.recents = nil
		return a.recentAway(now)
	}
	if n := len(a.recents); n == 0 || !a.recents[n-1].began.Equal(r.Latest) {
		a.recents = append(a.recents, trouble{r.Latest, a.totalsBefore(r.Latest)})
	}
	a.recents = slices.DeleteFunc(a.recents, func(t trouble) bool { return t.began.Before(r.Began) })
	if len(a.recents) == 0 || !a.recents[0].began.Equal(r.Began) || opened.After(r.Began) {
		return r
	}
	out := *r
	out.ClientsTurnedAway = new(a.turnedAway(a.recents[0].before))
	if a.away.last.After(out.Ended) { // its packets came before
		out.Ended = a.away.last
	}
	return &out
}

// totalsBefore are those of the latest mark before a moment.
func (a *account) totalsBefore(t time.Time) (out model.ClientTotals) {
	for i := range a.past {
		if a.past[i].at.Before(t) {
			out = a.past[i].totals
		}
	}
	return out
}

// repeatedAlone reports whether the packets that were dropped lately can only be repeated
// ones of clients of before: no attempt was begun, and nobody let in, in that time. The clients of the trouble were seen, so that those of this listener are.
func (a *account) repeatedAlone(r *model.Recent, lately *model.Lately) bool {
	c := lately.Losses.Clients
	if lately.Losses.DroppedPackets == 0 || r == nil || r.ClientsTurnedAway == nil || *r.ClientsTurnedAway == 0 {
		return false
	}
	seen := c.Observed >= lately.Span && c.Untracked == 0 && c.PacketsLost == 0 && c.Flood == nil && !c.Estimated
	others := c.Outcomes
	others[model.ClientStalled] = 0 // known minutes later of a client that cannot say that it has left
	return seen && c.Waiting+c.Settling == 0 && others == [model.NumClientOutcomes]uint64{}
}

// withoutRepeated is what was lost lately, and the trouble before it, where all packets of
// that time are repeated ones.
func (a *account) withoutRepeated(r *model.Recent, lately *model.Lately) (*model.Recent, *model.Lately) {
	past, now := *r, *lately
	past.Ended, past.Over = a.away.last, true
	now.Losses = model.Losses{
		AbandonedRequests: lately.Losses.AbandonedRequests, QueueResets: lately.Losses.QueueResets, Clients: lately.Losses.Clients,
	}
	return &past, &now
}
