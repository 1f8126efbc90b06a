package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Hysteresis keeps one listener's verdict from flapping from second to second:
// a worse status is taken at once, a better one after it has lasted, another
// cause of the same status when the one shown has not been seen for a time, whichever it
// is by then. The zero value uses DefaultThresholds.
//
// Whether something listens is a fact and not damped: down is entered and left
// at once. So is losing: it is damped by the time in which losses are counted.
type Hysteresis struct {
	Hold   time.Duration // a better status must last this long; 0: the default
	Settle time.Duration // a cause is shown this long after it was seen last; 0: the default

	state model.Shown
}

// Shown is the state that the next verdict will meet.
func (h *Hysteresis) Shown() model.Shown { return h.state }

// Reset has the next verdict shown whatever was shown before.
func (h *Hysteresis) Reset() { h.state = model.Shown{} }

// Apply returns the verdict to show at now: v, or the one shown before while v
// may yet be a flicker. Its text says then how long ago it was seen.
func (h *Hysteresis) Apply(now time.Time, v model.Verdict) model.Verdict {
	switch {
	case !h.state.Started, v.Status > h.state.Verdict.Status, h.state.Verdict.Status == model.StatusDown,
		v.Status < h.state.Verdict.Status && h.state.Verdict.Status == model.StatusLosing,
		v.Status == h.state.Verdict.Status && (v.Cause == h.state.Verdict.Cause || onlyFirst(h.state.Verdict.Cause) || behind(h.state.Verdict.Cause, v.Cause)):
		return h.show(now, v)
	case v.Status < h.state.Verdict.Status:
		h.state.Other = time.Time{}
		if h.state.Better.IsZero() {
			h.state.Better = now
		}
		if now.Sub(h.state.Better) >= h.hold() {
			return h.show(now, v)
		}
	default:
		h.state.Better = time.Time{}
		if h.state.Other.IsZero() {
			h.state.Other = now
		}
		h.state.Cause = v.Cause
		if now.Sub(h.state.Other) >= h.settle() {
			return h.show(now, v)
		}
	}
	return h.shownBefore(now)
}

// behind: what the busy threads wait for, or what keeps them from running, is known now, which
// contradicts nothing that was said before; nor does that nobody accepts, which takes longer
// to show than that nobody reads.
func behind(shown, now model.Cause) bool {
	switch now {
	case model.CauseConnectionPool, model.CauseDownstream, model.CauseJVMPause, model.CauseCPUThrottled:
		return shown == model.CauseMaxThreads
	case model.CauseNotAccepting:
		return shown == model.CauseNotReading
	}
	return false
}

// onlyFirst: no cause yet, or one that the first packets of a burst show before the
// limit is reached that drops those behind them.
func onlyFirst(c model.Cause) bool {
	return c == model.CauseNone || c == model.CauseAcceptQueue || c == model.CauseSlowAccept
}

func (h *Hysteresis) show(now time.Time, v model.Verdict) model.Verdict {
	h.state = model.Shown{Verdict: v, Started: true, Last: now, Cause: h.state.Cause}
	return v
}

// shownBefore is the verdict shown before, with its age: its numbers are those of that moment.
func (h *Hysteresis) shownBefore(now time.Time) model.Verdict {
	v := h.state.Verdict
	if age := now.Sub(h.state.Last); age > 0 {
		v.Summary += " (As of " + phrase.Seconds(age) + " ago: it may be over.)"
	}
	return v
}

func (h *Hysteresis) hold() time.Duration {
	if h.Hold > 0 {
		return h.Hold
	}
	return reading.DefaultThresholds().Hold
}

func (h *Hysteresis) settle() time.Duration {
	if h.Settle > 0 {
		return h.Settle
	}
	return reading.DefaultThresholds().Settle
}
