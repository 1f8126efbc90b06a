package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Basis is the evidence without the listener, to be kept with it.
func (e *Evidence) Basis() *model.Basis {
	b := &model.Basis{
		First: e.First, Elapsed: e.Elapsed, Interval: e.Interval,
		Delta: e.Delta, Sysctl: e.Sysctl, Closed: e.Closed,
	}
	if e.Before != nil {
		before := *e.Before
		before.Basis, before.Verdict, before.Totals = nil, model.Verdict{}, model.Totals{}
		before.Lately, before.Recent = nil, nil
		b.Before = &before
	}
	return b
}

// Again judges a listener from its basis, as it was judged at that time: the
// verdict of this program, which is the listener's own where the rules are the
// same. known is false where the listener has no basis.
func Again(at time.Time, l *model.Listener, t reading.Thresholds) (v model.Verdict, known bool) {
	b := l.Basis
	if b == nil {
		return model.Verdict{}, false
	}
	e := Evidence{
		Now: l, Before: b.Before, First: b.First, Elapsed: b.Elapsed, Interval: b.Interval,
		Delta: b.Delta, Sysctl: b.Sysctl, Closed: b.Closed, Shown: b.Shown,
	}
	v = Judge(e, t)
	if b.Shown != nil {
		h := Hysteresis{Hold: t.Hold, Settle: t.Settle, state: *b.Shown}
		v = h.Apply(at, v)
	}
	return AddClients(v, l, b.Interval), true
}
