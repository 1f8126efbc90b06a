package predict

import (
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// Measure is the load of a listener, in a snapshot, that a simulation gives again; ok is
// false where requests per second are not known, and where it does not.
func Measure(l *model.Listener, s *model.Snapshot) (Load, bool) {
	if !changesLimit(&l.Verdict) {
		return Load{}, false
	}
	m, ok := measure(l, s)
	if !ok {
		return Load{}, false
	}
	return m.fit()
}

// Verdict adds to the steps of a listener's answer what each would do, taken alone. The
// verdict given is not changed.
func (l *Load) Verdict(v model.Verdict) model.Verdict { return diagnosis.Effects(v, l.effect) }

// Snapshot is the same of all listeners of a snapshot, which is not changed.
func Snapshot(s *model.Snapshot) *model.Snapshot {
	out := *s
	out.Listeners = append([]model.Listener(nil), s.Listeners...)
	for i := range out.Listeners {
		l := &out.Listeners[i]
		if load, ok := Measure(l, s); ok {
			l.Verdict = load.Verdict(l.Verdict)
		}
	}
	return &out
}

func changesLimit(v *model.Verdict) bool {
	for _, s := range v.Answer.Do {
		if s.Limit != "" {
			return true
		}
	}
	return false
}

// effect is what a step would do: "with 20 threads all are served, the slowest after 1.2
// s; now 34 of 60 are turned away".
func (l *Load) effect(s model.Step) string {
	to, err := strconv.Atoi(strings.ReplaceAll(s.To, ",", ""))
	if err != nil {
		return ""
	}
	changed := l.Input
	var what string
	switch s.Limit {
	case "max_threads":
		changed.Threads, what = to, phrase.Count(to, "thread")
	case "max_connections":
		changed.MaxConnections, what = to, phrase.Count(to, "connection")
	case "accept_queue":
		changed.AcceptCount, changed.InForce, what = to, false, "a queue of "+phrase.Number(to+1)
	default:
		return ""
	}
	before, err := plan.Simulate(l.Input)
	if err != nil {
		return ""
	}
	after, err := plan.Simulate(changed)
	if err != nil {
		return ""
	}
	if failed, all := l.failed(after); failed > 0 {
		if was, of := l.failed(before); littleLess(float64(failed)/float64(all), float64(was)/float64(of)) {
			return "with " + what + " nearly as many are turned away as now: " + l.share(before)
		}
	}
	then, now := l.outcome(after, "all are served, the slowest after "), l.outcome(before, "the slowest waits ")
	if then == "" || now == "" {
		return ""
	}
	if l.waits {
		return "for clients that wait: with " + what + " " + then + "; now " + now
	}
	return "with " + what + " " + then + "; now " + now
}

// littleLess: a tenth less is nothing that a person would see.
func littleLess(share, was float64) bool { return share > .9*was }

// outcome is how clients fare: a number of those that came at once, a share of those that
// keep coming. It is "" where a queue still grows at the end, so that it says nothing of
// later.
func (l *Load) outcome(p *plan.Plan, allServed string) string {
	failed, all := l.failed(p)
	half, end := pointAt(p, l.Duration/2), pointAt(p, l.Duration)
	switch {
	case all == 0, p.Latency == nil:
		return ""
	case l.steady && failed == 0 && end.Waiting+end.AcceptQueue > half.Waiting+half.AcceptQueue+all/20:
		return ""
	case failed == 0:
		return allServed + phrase.Seconds(p.Latency.Max)
	}
	return l.share(p) + " are turned away"
}

func (l *Load) share(p *plan.Plan) string {
	failed, all := l.failed(p)
	if l.steady {
		return phrase.Percent(float64(failed) / float64(all))
	}
	return phrase.Number(failed) + " of " + phrase.Number(all)
}

// failed are those of all clients that are turned away; where they keep coming, of the
// second half, when what a load begins with is over.
func (l *Load) failed(p *plan.Plan) (failed, all int) {
	if !l.steady {
		return p.Outcomes.Failed(), p.Input.Requests
	}
	half, end := pointAt(p, l.Duration/2), pointAt(p, l.Duration)
	failed = end.Lost - half.Lost
	return failed, failed + end.Served - half.Served
}
