package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Again judges a listener from its basis, as it was judged at that time: the
// verdict of this program, which is the listener's own where the rules are the
// same. known is false where the listener has no basis.
func Again(at time.Time, l *model.Listener, t reading.Thresholds) (v model.Verdict, known bool) {
	b := l.Basis
	if b == nil {
		return model.Verdict{}, false
	}
	e := symptoms.Evidence{
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
