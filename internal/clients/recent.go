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

// recent adds how many clients were turned away in the trouble of the last quarter of an
// hour, where the handshakes were followed from its beginning.
func (a *account) recent(r *model.Recent, opened time.Time) *model.Recent {
	if r == nil {
		a.recents = nil
		return nil
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
