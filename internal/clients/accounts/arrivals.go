package accounts

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// pause is a time without a new attempt that ends one stream of arrivals and begins another.
const pause = 3 * time.Second

// arrivals are the latest clients that came without a pause, within what the account
// remembers: those of one burst, or of a stream that may still flow. nil where none began. The
// times are of the snapshots that had them first. plain: its answers are known.
func (a *Account) arrivals(now time.Time, plain bool) *model.Arrivals {
	var out *model.Arrivals
	var first time.Time
	answered := a.answered(now)
	for i := len(a.Past) - 1; i > 0; i-- {
		m := &a.Past[i]
		came := m.Totals.Sub(a.Past[i-1].Totals)
		came.Answers.Known = plain
		n := came.Came()
		switch {
		case n == 0:
			continue
		case out == nil:
			out = &model.Arrivals{Last: now.Sub(m.At), Answered: answered}
		case first.Sub(m.At) > pause:
			return out
		}
		first = m.At
		out.Clients += n
		out.First = now.Sub(first)
	}
	return out
}

// answered is how long ago the latest answer came, negative where none is remembered.
func (a *Account) answered(now time.Time) time.Duration {
	for i := len(a.Past) - 1; i > 0; i-- {
		if m := &a.Past[i]; m.Totals.Answers.Answered > a.Past[i-1].Totals.Answers.Answered {
			return now.Sub(m.At)
		}
	}
	return -1
}
