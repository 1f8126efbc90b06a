package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/phrase"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Hysteresis keeps one listener's verdict from flapping from second to second:
// a worse status is taken at once, a better one after it has lasted, another
// cause of the same status likewise. The zero value uses DefaultThresholds.
//
// Whether something listens is a fact and not damped: down is entered and left
// at once. Losses are damped already by the window they are counted in, but
// are held like the rest.
type Hysteresis struct {
	Hold   time.Duration // a better status must last so long; 0: the default
	Settle time.Duration // another cause must last so long; 0: the default

	shown   model.Verdict
	started bool
	last    time.Time // when a verdict like the one shown was last seen

	better time.Time   // since when the status is better; zero while it is not
	other  time.Time   // since when the cause is another one, the status the same
	cause  model.Cause // which
}

// Apply returns the verdict to show at now: v, or the one shown before while v
// may yet be a flicker. Its text says then how long ago it was seen.
func (h *Hysteresis) Apply(now time.Time, v model.Verdict) model.Verdict {
	switch {
	case !h.started, v.Status > h.shown.Status, h.shown.Status == model.StatusDown,
		v.Status == h.shown.Status && (v.Cause == h.shown.Cause || h.shown.Cause == model.CauseAcceptQueue || h.shown.Cause == model.CauseNone): // which are no cause yet
		return h.show(now, v)
	case v.Status < h.shown.Status:
		h.other = time.Time{}
		if h.better.IsZero() {
			h.better = now
		}
		if now.Sub(h.better) >= h.hold() {
			return h.show(now, v)
		}
	default:
		h.better = time.Time{}
		if h.other.IsZero() || v.Cause != h.cause {
			h.other, h.cause = now, v.Cause
		}
		if now.Sub(h.other) >= h.settle() {
			return h.show(now, v)
		}
	}
	return h.held(now)
}

func (h *Hysteresis) show(now time.Time, v model.Verdict) model.Verdict {
	h.shown, h.started, h.last = v, true, now
	h.better, h.other = time.Time{}, time.Time{}
	return v
}

// held is the verdict shown before, with its age.
func (h *Hysteresis) held(now time.Time) model.Verdict {
	v := h.shown
	if age := now.Sub(h.last); age > 0 {
		v.Summary += " (Seen " + phrase.Seconds(age) + " ago; the last looks differ.)"
	}
	return v
}

func (h *Hysteresis) hold() time.Duration {
	if h.Hold > 0 {
		return h.Hold
	}
	return DefaultThresholds().Hold
}

func (h *Hysteresis) settle() time.Duration {
	if h.Settle > 0 {
		return h.Settle
	}
	return DefaultThresholds().Settle
}
