package tap

import "time"

// pace is when the ring is read. Packets are left in a large one for some time: to be woken
// for each block costs more than to read it.
type pace struct {
	wakeAt  time.Time // when it is read whether packets come or not; zero for never
	resting bool      // the ring's timer is in use
}

const (
	// calmRest is for the calm. The ring holds as many as come in that time at 130,000 a second.
	calmRest = 50 * time.Millisecond
	// shortRest is for all other times.
	shortRest = 10 * time.Millisecond
)

// restAfter is how long the ring is left alone after it was read. any: there was something in it.
func (t *Tap) restAfter(any bool) time.Duration {
	relaxed := t.ring.size == large() && t.ring.taken < t.ring.size.blocks/2
	switch {
	case relaxed && t.oneWay.on:
		return calmRest
	case relaxed || !any: // the ring before is read first
		return shortRest
	}
	return 0
}

// wake has the ring drained again soon, whether packets come or not, while the counters
// may show what no packet does.
func (t *Tap) wake(now time.Time) {
	p := &t.pace
	switch needed := t.tracker.Open() > 0 && (t.oneWay.on || !t.tracker.Settled()); {
	case needed && !now.Before(p.wakeAt):
		p.wakeAt = now.Add(cookieEvery)
	case !needed && !p.wakeAt.IsZero():
		p.wakeAt = time.Time{}
	default:
		return
	}
	if !p.resting {
		t.setTimer()
	}
}

func (t *Tap) setTimer() {
	var left time.Duration
	if at := t.pace.wakeAt; !at.IsZero() {
		left = max(time.Until(at), 1)
	}
	_ = t.ring.ready.setTimer(left) // or the ring is closed
}
