package clients

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// trouble is when a listener began to lose something, and how many clients had been
// turned away before.
type trouble struct {
	began  time.Time
	before uint64
}

// away are the clients that were turned away lately, by what is decided: be it without a
// packet that was dropped.
type away struct {
	trouble
	last  time.Time   // when one was turned away; zero for never
	count uint64      // as of then
	cause model.Cause // of the verdict then
}

// see takes how many there are by now.
func (w *away) see(now time.Time, turnedAway uint64, cause model.Cause) {
	if turnedAway <= w.count {
		return
	}
	if w.last.IsZero() || now.Sub(w.last) > model.RecentFor {
		w.trouble, w.cause = trouble{now, w.count}, model.CauseNone
	}
	w.last, w.count = now, turnedAway
	if cause != model.CauseNone {
		w.cause = cause
	}
}

// recent is the trouble of clients of which no packet was dropped; nil where there is none.
func (w *away) recent(now time.Time) *model.Recent {
	if w.last.IsZero() || now.Sub(w.last) > model.RecentFor {
		return nil
	}
	return &model.Recent{
		Began: w.began, Ended: w.last, Latest: w.began, Over: now.Sub(w.last) >= model.Quiet,
		ClientsTurnedAway: new(w.count - w.before), Cause: w.cause,
	}
}

// recent is a listener's trouble of the last quarter of an hour, with how many clients
// were turned away in it where the handshakes were followed from its beginning.
func (a *account) recent(l *model.Listener, now, opened time.Time) *model.Recent {
	a.away.see(now, a.totals.TurnedAway(), l.Verdict.Cause)
	r := l.Recent
	if r == nil {
		a.recents = nil
		return a.away.recent(now)
	}
	if n := len(a.recents); n == 0 || !a.recents[n-1].began.Equal(r.Latest) {
		a.recents = append(a.recents, trouble{r.Latest, a.turnedAwayBefore(r.Latest)})
	}
	a.recents = slices.DeleteFunc(a.recents, func(t trouble) bool { return t.began.Before(r.Began) })
	if len(a.recents) == 0 || !a.recents[0].began.Equal(r.Began) || opened.After(r.Began) {
		return r
	}
	out := *r
	out.ClientsTurnedAway = new(a.totals.TurnedAway() - a.recents[0].before)
	if a.away.last.After(out.Ended) { // its packets came before
		out.Ended = a.away.last
	}
	return &out
}

// turnedAwayBefore is how many there were at the latest mark before a moment.
func (a *account) turnedAwayBefore(t time.Time) (n uint64) {
	for i := range a.past {
		if a.past[i].at.Before(t) {
			n = a.past[i].totals.TurnedAway()
		}
	}
	return n
}
