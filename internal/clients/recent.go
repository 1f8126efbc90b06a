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

// quiet is the time after a trouble in which nothing was lost, but what is of that trouble.
type quiet struct {
	since time.Time // zero while a trouble lasts, and before any
	ended time.Time // the trouble
}

// ofBefore reports whether the listener is quiet: all that was lost lately is of clients that
// began before a trouble ended.
func (a *account) ofBefore(r *model.Recent, lately *model.Lately, now time.Time) bool {
	q := &a.quiet
	switch lost := lostLately(lately); {
	case r == nil:
		*q = quiet{}
		return false
	case q.since.IsZero() && !lost:
		*q = quiet{now, r.Ended}
	case q.since.IsZero() && a.repeatedAlone(r, lately):
		*q = quiet{now, a.away.last}
	case q.since.IsZero():
		return false
	case lost && !a.repeatedAlone(r, lately) && !a.nobodyNew(r, lately):
		*q = quiet{}
		return false
	}
	return true
}

func lostLately(lately *model.Lately) bool {
	return lately.Losses.DroppedPackets > 0 || lately.Losses.QueueResets > 0 || lately.Losses.Clients.TurnedAway() > 0
}

// seen reports whether the clients of the listener, those of the trouble too, are all counted.
func seen(r *model.Recent, lately *model.Lately) bool {
	c := lately.Losses.Clients
	return r.ClientsTurnedAway != nil && *r.ClientsTurnedAway > 0 &&
		c.Observed >= lately.Span && c.Untracked == 0 && c.PacketsLost == 0 && c.Flood == nil && !c.Estimated
}

// repeatedAlone reports whether the packets that were dropped lately can only be repeated
// ones of clients of before: no attempt was begun, and nobody let in, in that time.
func (a *account) repeatedAlone(r *model.Recent, lately *model.Lately) bool {
	c := lately.Losses.Clients
	others := c.Outcomes
	others[model.ClientStalled] = 0 // known minutes later of a client that cannot say that it has left
	return lately.Losses.DroppedPackets > 0 && seen(r, lately) && c.Waiting+c.Settling == 0 && others == [model.NumClientOutcomes]uint64{}
}

// nobodyNew reports whether each client in trouble began before it was quiet: what clients that
// have left repeat is dropped, or lets them in, for minutes, whoever else comes meanwhile.
func (a *account) nobodyNew(r *model.Recent, lately *model.Lately) bool {
	c := lately.Losses.Clients
	return seen(r, lately) && lately.Losses.QueueResets == 0 && c.Waiting == 0 && c.Outcomes[model.ClientRefused] == 0 &&
		a.troubled.Before(a.quiet.since)
}

// withoutThose is what was lost lately without what is of a trouble before, and that trouble.
func (a *account) withoutThose(r *model.Recent, lately *model.Lately) (*model.Recent, *model.Lately) {
	past, now := *r, *lately
	past.Ended, past.Over = a.quiet.ended, true
	c := *lately.Losses.Clients
	for _, o := range []model.ClientOutcome{model.ClientGaveUp, model.ClientStalled, model.ClientReset} {
		c.Outcomes[o] = 0
	}
	c.Answers.Unanswered = 0
	now.Losses = model.Losses{AbandonedRequests: lately.Losses.AbandonedRequests, QueueResets: lately.Losses.QueueResets, Clients: &c}
	return &past, &now
}
