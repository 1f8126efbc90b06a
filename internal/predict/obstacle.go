package predict

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// obstacle is what keeps clients away from a server that has room for them, and has no size: an address that is not
// listened on, a rule in front of the listener, a process that stands still. What it costs is known from the
// handshakes; without it these clients are like the others.
type obstacle struct {
	limit   string
	without string  // when it is gone, and who
	then    string  // what becomes of them: "served" where a simulation of all who come serves them, else "let in"
	now     float64 // the share of the clients that it costs
	fate    string  // what becomes of these
	young   bool    // it will cost more: who gives up is known later
}

// hardly is a share of the clients that other troubles may cost.
const hardly = .05

// inTheWay is the one that turns away nearly all who are; ok is false where there may be no room for all.
func inTheWay(l *model.Listener, s *model.Snapshot) (o *obstacle, ok bool) {
	lost, span := l.Losses, s.Interval
	if l.Lately != nil {
		lost, span = &l.Lately.Losses, l.Lately.Span
	}
	if lost == nil || lost.Clients == nil || span <= 0 || over(l) || !limitsKnown(l) {
		return nil, false
	}
	c := lost.Clients
	var m measured
	if !m.counted(c, l) || m.turnedAway == 0 {
		return nil, false
	}
	served := m.finished
	if served < 0 {
		served = int(c.LetIn)
	}
	o = &obstacle{fate: "turned away", then: "let in", young: !settledFor(l, s)}
	var cost uint64
	room := resting(l)
	switch l.Verdict.Cause {
	case model.CauseListensElsewhere:
		o.limit, o.without, o.fate, cost = reading.LimitAddress, "who asks there is", "refused", c.Outcomes[model.ClientRefused]
	case model.CauseBeforeListener:
		if len(l.Verdict.Answer.Do) != 1 { // another place is known, too
			return nil, false
		}
		o.limit, o.without, cost = reading.LimitRule, "without it all are", c.Outcomes[model.ClientGaveUp]+c.Outcomes[model.ClientRefused]
	case model.CauseJVMPause:
		o.limit, o.without, cost = reading.LimitPause, "without the pauses all are", c.TurnedAway()
		if reading.Stopped(l) {
			o.without = "once it runs again all are"
		}
		room = settledFor(l, s) && inPauses(lost) && halfFree(l)
	default:
		return nil, false
	}
	all := m.turnedAway + served
	if o.now = float64(cost) / float64(all); !room || float64(m.turnedAway)-float64(cost) > hardly*float64(all) {
		return nil, false
	}
	if servesAll(l, s, max(int(c.Came()), m.offered), served, span) {
		o.then = "served"
	}
	return o, o.then == "served" || o.limit != reading.LimitPause
}

// inPauses reports whether most packets were dropped while it stood still, and nearly all others at a queue of which
// nothing else is known to have filled it: it is full for a moment after a pause, too.
func inPauses(lost *model.Losses) bool {
	var in, after uint64
	for _, d := range lost.By {
		switch d.Cause {
		case model.CauseJVMPause:
			in += d.Packets
		case model.CauseAcceptQueue:
			after += d.Packets
		}
	}
	return 2*in > lost.DroppedPackets && float64(in+after) >= (1-hardly)*float64(lost.DroppedPackets)
}

// servesAll reports whether a simulation serves all who come, also if a request took twice as long.
func servesAll(l *model.Listener, s *model.Snapshot, come, served int, span time.Duration) bool {
	took, ok := noLongerThan(l, served, span.Seconds())
	if !ok {
		return false
	}
	in := limits(l, namespaceOf(s, l).Sysctl)
	in.Rate, in.Duration, in.ServiceTime = float64(come)/span.Seconds(), 3*span, 2*took
	in.ConnectTimeout, in.ClientTimeout = time.Second-time.Millisecond, usualPatience
	if in.Rate*in.Duration.Seconds() > mostRequests {
		return false
	}
	p, err := plan.Simulate(in)
	return err == nil && p.Outcomes.Failed() == 0
}

// effect is of the step that ends it.
func (o *obstacle) effect(limit string) string {
	if limit != o.limit {
		return ""
	}
	return o.without + " " + o.then + "; now " + phrase.Percent(o.now) + " are " + o.fate
}

// ports are the local ports towards one destination, nearly all of which are in TIME_WAIT: connections that are short,
// of which each takes one for a minute.
type ports int

// How long the kernel keeps a port in TIME_WAIT (TCP_TIMEWAIT_LEN), and with net.ipv4.tcp_tw_reuse from a connection to
// the same destination.
const (
	timeWait = time.Minute
	reuse    = time.Second
)

func portsInTimeWait(l *model.Listener) (p ports, ok bool) {
	if l.Verdict.Cause != model.CauseEphemeralPorts || l.Process == nil || l.Process.Busiest == nil {
		return 0, false
	}
	stage, known := reading.LimitNamed(l.Limits, reading.StageEphemeralPorts)
	d := l.Process.Busiest
	return ports(stage.Max), known && d.Reusable == 0 && float64(d.TimeWait) >= (1-hardly)*float64(d.Ports)
}

// effect is how many connections a second there are ports for: how many are wanted is not known, as one without a port
// is in no counter.
func (p ports) effect(limit string) string {
	number, busy := p, timeWait
	switch limit {
	case reading.LimitPorts:
		number = reading.WidestPortRange
	case reading.LimitReuse:
		busy = reuse
	default:
		return ""
	}
	return "there are ports for " + number.perSecond(busy) + " new connections a second to it; now for " + p.perSecond(timeWait)
}

func (p ports) perSecond(busy time.Duration) string {
	return phrase.Decimal(float64(p) / busy.Seconds())
}
