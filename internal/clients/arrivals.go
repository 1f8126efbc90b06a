package clients

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// pause is a time without a new attempt that ends one stream of arrivals and begins another.
const pause = 3 * time.Second

// arrivals are the latest clients that came without a pause, within what the account
// remembers: those of one burst, or of a stream that may still flow. nil where none began. The
// times are of the snapshots that had them first.
func (a *account) arrivals(now time.Time) *model.Arrivals {
	var out *model.Arrivals
	var first time.Time
	answered := a.answered(now)
	for i := len(a.past) - 1; i > 0; i-- {
		m := &a.past[i]
		came := m.totals.Sub(a.past[i-1].totals)
		came.Answers.Known = a.plain
		n := came.Came()
		switch {
		case n == 0:
			continue
		case out == nil:
			out = &model.Arrivals{Last: now.Sub(m.at), Answered: answered}
		case first.Sub(m.at) > pause:
			return out
		}
		first = m.at
		out.Clients += n
		out.First = now.Sub(first)
	}
	return out
}

// answered is how long ago the latest answer came, negative where none is remembered.
func (a *account) answered(now time.Time) time.Duration {
	for i := len(a.past) - 1; i > 0; i-- {
		if m := &a.past[i]; m.totals.Answers.Answered > a.past[i-1].totals.Answers.Answered {
			return now.Sub(m.at)
		}
	}
	return -1
}
