// Package diagnosis turns snapshots and counters into a verdict: whose packets
// were dropped, which limit did it, what the clients saw and what to change.
// It is pure: it reads no clock, no file and no socket, and imports nothing of
// the project but the domain's values and how numbers are written.
//
// The packages below it are read from the bottom: what one or two readings show (reading),
// what the evidence shows by that (symptoms), how it is said (words) and mended (advice), the
// catalogue of causes (causes), and what else a reader should know (findings). Here they become
// status, cause, chain, summary and answer.
package diagnosis

import (
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/findings"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Judge says what state a listener is in, which limit is the cause, and what to do.
func Judge(e symptoms.Input, t reading.Thresholds) model.Verdict {
	if e.Now == nil {
		return model.Verdict{}
	}
	return newJudge(e, causes.Catalogue(), t).verdict()
}

// verdict is all that is said of one listener.
func (j *judge) verdict() model.Verdict {
	v := model.Verdict{Status: j.status(), Chain: j.chain()}
	v.Cause = j.cause(v.Status)
	if was, ok := j.s.WaitedFor(); ok && v.Status == model.StatusLosing && v.Cause == model.CauseNone {
		return j.asBefore(v, was)
	}
	v.Summary = j.summary(v)
	v.Findings = j.findings(v)
	v.Answer = j.answer(v)
	return v
}

// asOf begins what was said of a moment ago.
const asOf = "As of a moment ago: "

// asBefore is the verdict on clients that have left since, and who had waited for what was shown then: its
// cause, its reason and its steps.
func (j *judge) asBefore(v, was model.Verdict) model.Verdict {
	v.Cause, v.Chain = was.Cause, was.Chain
	why := asOf + strings.TrimPrefix(was.Answer.Why, asOf)
	v.Summary = why
	v.Findings = []model.Finding{{Code: string(v.Cause), Severity: model.SeverityCritical, Evidence: why}}
	for _, f := range was.Findings {
		if f.Code == string(v.Cause) {
			v.Findings[0].Advice = f.Advice
		}
	}
	v.Findings = append(v.Findings, findings.OfClients(j.s)...)
	v.Answer = model.Answer{What: j.what(v), Why: why, Do: was.Answer.Do, Not: was.Answer.Not}
	return v
}

// Again judges a listener from its basis, as it was judged at that time: the
// verdict of this program, which is the listener's own where the rules are the
// same. known is false where the listener has no basis.
func Again(at time.Time, l *model.Listener, t reading.Thresholds) (v model.Verdict, known bool) {
	b := l.Basis
	if b == nil {
		return model.Verdict{}, false
	}
	e := symptoms.Input{
		Now: l, Before: b.Before, First: b.First, Elapsed: b.Elapsed, Interval: b.Interval,
		Delta: b.Delta, Sysctl: b.Sysctl, Closed: b.Closed, Shown: b.Shown,
	}
	v = Judge(e, t)
	if b.Shown != nil {
		h := Hysteresis{Hold: t.Hold, Settle: t.Settle, state: *b.Shown}
		v = h.Apply(at, v)
	}
	return AddClients(v, l, b.Interval), true
}
