// Package diagnosis turns snapshots and counters into a verdict: whose packets
// were dropped, which limit did it, what the clients saw and what to change.
// It is pure: it reads no clock, no file and no socket, and imports nothing of
// the project but the domain's values and how numbers are written.
package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Evidence is what a verdict on one listener is judged from.
type Evidence struct {
	// Now and Before are two snapshots of the listener; Before is nil with a single
	// one. Now.Losses are those of Interval, nil when nothing was measured.
	// Now.Limits are used when they are there, else computed by Headroom.
	Now, Before *model.Listener
	// First is set where Before is nil and another snapshot will follow: what takes
	// two snapshots is not said yet. (Else a single snapshot is judged from one.)
	First    bool
	Elapsed  time.Duration // between the two snapshots
	Interval time.Duration // what Now.Losses and Delta span
	// Delta is how far the namespace's counters moved in Interval, nil with one snapshot.
	Delta  model.Counters
	Sysctl map[string]int // of the listener's namespace, as in model.NetNS
	// Closed is set when the listener went away within Interval, whether or not
	// another one took its place.
	Closed *model.Closed
	// Shown is the state that was shown before, nil without one: as long as there is
	// trouble what its verdict advised is the least that is advised.
	Shown *model.Shown
}

// Judge says what state a listener is in, which limit is the cause, and what to do.
func Judge(e Evidence, t reading.Thresholds) model.Verdict {
	if e.Now == nil {
		return model.Verdict{}
	}
	return newJudge(e, catalogue(), t).verdict()
}

// verdict is all that is said of one listener.
func (j *judge) verdict() model.Verdict {
	v := model.Verdict{Status: j.status(), Chain: j.chain()}
	v.Cause = j.cause(v.Status)
	v.Summary = j.summary(v)
	v.Findings = j.findings(v)
	v.Answer = j.answer(v)
	return v
}
