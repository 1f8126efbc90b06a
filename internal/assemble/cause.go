package assemble

import (
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// causePatience is how long the cause of a drop waits for a reading of that
	// moment: the packet is to be counted within a second, by whoever asks then.
	causePatience = 600 * time.Millisecond
	// nearby is how long after a drop a reading may be made that says that nothing
	// was full. One from before it says nothing: a server fills in less.
	nearby = 1500 * time.Millisecond
	// atOnce is how long a burst lasts at most in which no client is served.
	atOnce = 100 * time.Millisecond
)

// Causes name the limits behind the drops that wait for one, where they are known by now.
func Causes(state *State, f *facts.View, opt Options) map[model.ListenerID]losses.Causes {
	out := make(map[model.ListenerID]losses.Causes)
	var d *draft
	for i := range f.Namespaces {
		n := &f.Namespaces[i]
		for id, a := range n.Accounts {
			if len(a.Waiting) == 0 {
				continue
			}
			if d == nil {
				d = newDraft(state, f, &opt)
				d.listeners()
				d.slotsMissing()
			}
			out[id] = d.causes(id, a)
		}
	}
	return out
}

// FinalCauses are those of the drops of a listener that closed with its namespace: as it
// was last.
func FinalCauses(state *State, now time.Time, id model.ListenerID, waiting []losses.Drop, t reading.Thresholds) losses.Causes {
	var h *history
	if state != nil {
		h = state.histories[id]
	}
	return finalCauses(h, now, waiting, t)
}

// witness is what is known around the drops of a listener.
type witness struct {
	now        time.Time
	final      bool            // nothing more will be read
	listener   *model.Listener // as it is published
	before     moment          // the listener with the readings before
	previous   moment          // the last at the listener that stood there before
	judgements []facts.Reading[evidence.Judgement]
	counted    []facts.Reading[*connections.Found]
	full       time.Time // since when its queue is full, zero while it is not
	t          reading.Thresholds
}

// causes are those that are known by now.
func (w *witness) causes(waiting []losses.Drop) losses.Causes {
	out := make(losses.Causes, len(waiting))
	for _, d := range waiting {
		if c, e, known := w.cause(d); known {
			out.Add(d, losses.Cause{Cause: c, Evidence: e})
		}
	}
	return out
}

// cause names the limit behind a drop: by the process and its acceptor at that
// moment, else by the connections around it. known is false while a reading of
// that moment may still come.
func (w *witness) cause(d losses.Drop) (c model.Cause, e model.Evidence, known bool) {
	if d.Previous && w.previous.Listener != nil {
		return w.byPhases(w.previous, w.previous.Listener, d)
	}
	if w.listener == nil {
		return model.CauseAcceptQueue, model.EvidenceNone, true
	}
	j, pending := w.judgement(d)
	waits := w.now.Sub(d.Since) < causePatience && !w.final
	if j.Strength == evidence.StrengthAcceptor || j.Strength == evidence.StrengthFiles || j.Strength == evidence.StrengthProcess {
		return w.ofBurst(d, j.Cause, model.Evidence(j.Strength), waits)
	}
	if waits && (pending || !w.read(d.Since) && !w.stands(d.Since)) {
		return "", "", false
	}
	c, e, _ = w.byPhases(w.before, w.listener, d)
	if c == model.CauseAcceptQueue && waits { // what is missing may still be read
		return "", "", false
	}
	return w.ofBurst(d, c, e, waits)
}

// ofBurst is the cause of a drop that c seems to be. Of a burst that is said to have come faster
// than it was accepted, and is so large that most of it would have met maxConnections however fast
// the acceptor is, it is that limit where a count of the connections right after it shows them
// all taken. A count alone that shows others free says nothing of such a burst: the acceptor may not have
// come to them yet, or who was let in may have been served by then.
func (w *witness) ofBurst(d losses.Drop, c model.Cause, e model.Evidence, waits bool) (model.Cause, model.Evidence, bool) {
	if c != model.CauseSlowAccept && c != model.CauseCPUSaturated || d.Until.Sub(d.Since) > atOnce || d.Packets <= 2*w.roomBefore(d) {
		return c, e, true
	}
	counted := false // since
	for _, r := range w.counted {
		if r.At.Before(d.Since) || !r.At.Before(d.Until.Add(nearby)) {
			continue
		}
		if r.Value.Counts.SlotsInUse() >= model.ConnectionsReached(w.listener.Connector.MaxConnections.Value) {
			if c, e, known := w.byPhases(w.before, w.listener, d); c == model.CauseKeepAliveIdle {
				return c, e, known
			}
			return model.CauseMaxConnections, model.EvidencePhases, true
		}
		counted = true
	}
	switch {
	case waits && (!counted || e == model.EvidencePhases): // one that shows them may still come
		return "", "", false
	case e == model.EvidencePhases:
		return model.CauseAcceptQueue, model.EvidenceNone, true
	}
	return c, e, true
}

// roomBefore is how many more clients could be held when a burst came, at most.
func (w *witness) roomBefore(d losses.Drop) uint64 {
	if reading.ConnectionLimit(w.listener) != reading.LimitKnown {
		return math.MaxUint64 / 2
	}
	most := w.listener.Connector.MaxConnections.Value
	if b := w.before.Listener; b != nil && b.Connections != nil && !b.Connections.At.After(d.Since) && d.Since.Sub(b.Connections.At) < nearby {
		n, _ := b.Taken()
		most = max(0, most-n)
	}
	return uint64(most)
}

// judgement is the first on a reading taken after a drop that names a limit, else
// the latest.
func (w *witness) judgement(d losses.Drop) (out evidence.Judgement, pending bool) {
	pending = true
	for _, r := range w.judgements {
		if r.At.Before(d.Since) {
			continue
		}
		out, pending = r.Value, r.Value.Pending
		if out.Strength != evidence.StrengthNone && out.Strength != evidence.StrengthPhases {
			break
		}
	}
	return out, pending && len(w.judgements) > 0
}

// read reports whether connections and process were read since a drop.
func (w *witness) read(since time.Time) bool {
	c, p := w.listener.Connections, w.listener.Process
	return c != nil && !c.At.Before(since) && (p == nil || !p.At.Before(since))
}

// stands reports whether the reading before a drop still holds: the queue has been
// full ever since, so that nobody was let in.
func (w *witness) stands(since time.Time) bool {
	c := w.listener.Connections
	return c != nil && !w.full.IsZero() && w.full.Before(c.At) && since.Sub(c.At) < nearby
}

// byPhases judges from the readings on both sides of a drop. That nothing was
// full is said only of a reading that is near and not from before it, that all workers were
// busy only where both are near.
func (w *witness) byPhases(before moment, now *model.Listener, d losses.Drop) (model.Cause, model.Evidence, bool) {
	c := causes.DropCause(before.Listener, now, w.now.Sub(before.at), w.t)
	switch {
	case c == model.CauseSlowAccept && !near(now.Connections, d),
		c == model.CauseMaxThreads && (!beside(before.Connections, d) || !beside(now.Connections, d)):
		c = model.CauseAcceptQueue
	}
	return c, strength(c), true
}

func near(c *model.Connections, d losses.Drop) bool {
	if c == nil || c.At.IsZero() {
		return false
	}
	return !c.At.Before(d.Since) && c.At.Before(d.Until.Add(nearby))
}

// beside reports whether the connections were counted near a drop, on either side of it.
func beside(c *model.Connections, d losses.Drop) bool {
	return c != nil && c.At.After(d.Since.Add(-nearby)) && c.At.Before(d.Until.Add(nearby))
}

func strength(c model.Cause) model.Evidence {
	switch c {
	case model.CauseJVMPause, model.CauseCPUThrottled, model.CauseCPUSaturated:
		return model.EvidenceProcess
	case model.CauseOpenFiles:
		return model.EvidenceFiles
	case model.CauseAcceptQueue, model.CauseSynBacklog:
		return model.EvidenceNone
	}
	return model.EvidencePhases
}

// causes are those of a listener's drops that are known by now.
func (d *draft) causes(id model.ListenerID, a *losses.Report) losses.Causes {
	for i := range d.Listeners {
		if l := &d.Listeners[i]; l.ID == id {
			return d.witnessOf(l).causes(a.Waiting)
		}
	}
	h := d.next.histories[id]
	if a.Absent { // any listener seen since was another one
		h = nil
	}
	return finalCauses(h, d.Time, a.Waiting, d.opt.Thresholds)
}

// finalCauses are those of a listener that is not there: as it was last.
func finalCauses(h *history, now time.Time, waiting []losses.Drop, t reading.Thresholds) losses.Causes {
	w := witness{now: now, final: true, t: t}
	if h != nil {
		last := h.moments.last
		w.previous, w.before, w.listener = last, last, last.Listener
	}
	return w.causes(waiting)
}
