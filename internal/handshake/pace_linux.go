package handshake

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

// run drains the ring as blocks become ready, and after each rest, until the tap is closed.
func (t *Tap) run() {
	defer close(t.done)
	for rest := time.Duration(0); ; {
		ring, open := t.current()
		if !open {
			return
		}
		timed, err := true, error(nil)
		if rest > 0 {
			err = ring.ready.rest(rest)
		} else {
			timed, err = ring.ready.wait()
		}
		if err != nil { // it was closed or replaced
			time.Sleep(shortRest)
		}
		rest = t.drain(timed)
	}
}

func (t *Tap) current() (r *ring, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ring, !t.closed
}

// drain says how long the ring is to be left alone then. timed: there may be nothing in it.
func (t *Tap) drain(timed bool) (rest time.Duration) {
	defer t.readAddresses() //nolint:errcheck // those that were known stay
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0
	}
	if any := t.drainLocked(); any || !timed {
		rest = t.restAfter(any)
	}
	rested := t.pace.resting
	if t.pace.resting = rest > 0; rested && rest == 0 {
		t.setTimer()
	}
	return rest
}

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
	switch needed := t.tracker.table.open > 0 && (t.oneWay.on || !t.tracker.Settled()); {
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
