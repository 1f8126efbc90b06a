package predict

import (
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// door is a load that is turned away in front of a server that has room and rests: clients that come together and are
// more than its accept queue holds, or that find the SYN queue full.
type door struct {
	in         plan.Input // as it is; of the SYN queue as it would be without one
	syn        bool
	now        float64 // the share that is turned away
	configured int     // acceptCount, 0 where it is not known
}

// rests is how much of a limit may be in use at a server that is not held up by it.
const rests = .5

// atTheDoor is such a load, where it keeps coming and the accept queue is empty again after each of its bursts. ok is
// false where a simulation does not turn away as many: of the SYN queue, which others fill, it is known from the kernel.
func atTheDoor(l *model.Listener, s *model.Snapshot) (*door, bool) {
	d := &door{syn: l.Verdict.Cause == model.CauseSynBacklog}
	if !d.syn && l.Verdict.Cause != model.CauseSlowAccept && l.Verdict.Cause != model.CauseBacklogClamped {
		return nil, false
	}
	if !limitsKnown(l) || over(l) || !resting(l) || l.Lately == nil || l.Losses.Clients == nil || !settledFor(l, s) {
		return nil, false
	}
	var m measured
	c := l.Lately.Losses.Clients
	if !m.counted(c, l) || m.turnedAway == 0 {
		return nil, false
	}
	served := m.finished
	if served < 0 {
		served = int(c.LetIn)
	}
	span := l.Lately.Span.Seconds()
	group := int(l.Lately.Losses.Burst) + int(math.Ceil(float64(c.LetIn)/span))
	if d.syn {
		group = 1
	}
	took, ok := noLongerThan(l, served, span)
	if !ok || group == 0 || span < 1 {
		return nil, false
	}
	d.now = float64(m.turnedAway) / float64(m.turnedAway+served)
	d.configured, _ = reading.AcceptCount(l)
	d.in = limits(l, namespaceOf(s, l).Sysctl)
	d.in.Rate, d.in.Duration, d.in.ServiceTime = float64(c.Came())/span, 3*l.Lately.Span, took // long enough for what grows
	d.in.Together, d.in.LateAcceptor = group, !d.syn
	d.in.ConnectTimeout = time.Second - time.Millisecond // who asks again is among those that come
	if d.in.Rate*d.in.Duration.Seconds() > mostRequests {
		return nil, false
	}
	if d.syn {
		return d, !d.in.Syncookies
	}
	p, err := plan.Simulate(d.in)
	return d, err == nil && math.Abs(share(p)-d.now) <= near
}

// share is the part of the clients that a simulation turns away.
func share(p *plan.Plan) float64 { return float64(p.Outcomes.Failed()) / float64(p.Input.Requests) }

// resting reports whether there are threads and connections enough, and nobody stands in the accept queue.
func resting(l *model.Listener) bool {
	return l.AcceptQueue.Length == 0 && halfFree(l)
}

// halfFree reports whether half of the threads and of the connections are. Where clients have reset, a thread may
// still work for each of them.
func halfFree(l *model.Listener) bool {
	busy, is := l.BusyThreads()
	if is == model.BusyAfterResets {
		busy, is = l.Connections.Accepted+*l.Connections.Reset, model.BusyIsKnown
	}
	threads, connections := l.Connector.MaxThreads.Value, l.Connector.MaxConnections.Value
	return is == model.BusyIsKnown && float64(busy) <= rests*float64(threads) &&
		(connections < 0 || float64(l.Connections.Accepted) <= rests*float64(connections))
}

// noLongerThan is how long a request takes at most: as long as clients had to wait for the first byte of their answer,
// else by Little's law from who is inside, and one who may have just left.
func noLongerThan(l *model.Listener, served int, span float64) (took time.Duration, ok bool) {
	if r := &l.Losses.Clients.Responses; r.Count > 0 {
		return time.Duration(r.Sum / float64(r.Count) * float64(time.Second)), true
	}
	if served < minFinished {
		return 0, false
	}
	return time.Duration(float64(l.Connections.Accepted+1) / float64(served) * span * float64(time.Second)), true
}

// effect is of a limit of the accept queue, or of SYN cookies: with either, who comes is let in. It is not known where
// it would be another one for clients that have the patience that many have, or if requests took twice as long.
func (d *door) effect(limit string, to int) string {
	in, with := d.change(limit, to)
	after, err := plan.Simulate(in)
	if with == "" || err != nil {
		return ""
	}
	longer := in
	longer.ServiceTime, longer.ClientTimeout = 2*in.ServiceTime, usualPatience
	if p, err := plan.Simulate(longer); err != nil || math.Abs(share(p)-share(after)) > near {
		return ""
	}
	now := phrase.Percent(d.now)
	switch failing := share(after); {
	case failing == 0 && d.syn: // who fills the queue does not
		return with + " all that answer are served; now " + now + " are turned away"
	case failing == 0:
		return with + " all are served; now " + now + " are turned away"
	case littleLess(failing, d.now):
		return with + " nearly as many are turned away as now: " + now
	default:
		return with + " " + phrase.Percent(failing) + " are turned away; now " + now + " are turned away"
	}
}

// change is the load with another limit, and what that is called; "" where it is none that matters here.
func (d *door) change(limit string, to int) (in plan.Input, with string) {
	in = d.in
	switch {
	case d.syn && limit == reading.LimitCookies && to > 0:
		in.Syncookies = true
		return in, "with SYN cookies"
	case !d.syn && limit == reading.LimitSomaxconn && d.configured > 0:
		in.AcceptCount, in.InForce, in.Somaxconn = d.configured, false, to
	case !d.syn && limit == reading.StageAcceptQueue:
		in.AcceptCount, in.InForce = to, false
	default:
		return in, ""
	}
	return in, "with a queue of " + phrase.Number(in.Backlog()+1) + ", once started again,"
}
