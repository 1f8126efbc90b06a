package symptoms

import (
	"time"

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
