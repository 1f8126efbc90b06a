package schedule

import (
	"context"
	"time"
)

// bell wakes a loop before its time. Ringing it again before it was heard is one.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// every runs a step when the time that it named before has come, or when the
// bell rings, but not before least has passed since the latest step.
func every(ctx context.Context, b bell, now func() time.Time, least func() time.Duration, step func() (next time.Duration)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ring := b
	var last, due time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-ring:
			if wait := least() - now().Sub(last); wait > 0 && !last.IsZero() {
				ring = nil
				timer.Reset(min(wait, max(0, due.Sub(now())))) // a bell puts nothing off
				continue
			}
		case <-timer.C:
		}
		last = now()
		ring = b
		next := max(step(), time.Millisecond)
		due = now().Add(next)
		timer.Reset(next)
	}
}

// always is a time that does not change.
func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
