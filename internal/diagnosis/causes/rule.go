package causes

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Certainty is how surely evidence shows a cause.
type Certainty int

// The certainties.
const (
	not      Certainty = iota
	Possibly           // it is the cause where nothing else is certain
	Surely
)

// When is a certainty where something is so.
func When(is bool, c Certainty) Certainty {
	if is {
		return c
	}
	return not
}

// refutation is what excludes a cause that the evidence shows otherwise.
type refutation[E any] struct {
	name string // as part of a sentence: "the acceptor was in accept() in both readings"
	by   func(E) bool
}

// rule says when a cause holds on one kind of evidence: on positive evidence, unless one
// of the refutations does.
type rule[E any] struct {
	holds   func(E) Certainty // nil: this evidence never shows it
	refuted []refutation[E]
}

func (r *rule[E]) Of(e E) Certainty {
	if r.holds == nil {
		return not
	}
	c := r.holds(e)
	for i := range r.refuted {
		if c == not || r.refuted[i].by(e) {
			return not
		}
	}
	return c
}

// Cause is one entry of the catalogue.
type Cause struct {
	Name model.Cause

	// When it is the cause of a dropped packet by the process and its acceptor at that
	// moment, and by two readings around it; and of the present state of a listener.
	moment rule[*evidence.Moment]
	around rule[reading.Pair]
	Now    rule[*symptoms.Symptoms]
	// dropped is what excludes it as the cause of the packets dropped in an interval, whatever the
	// moments of the drops showed.
	dropped []refutation[*symptoms.Symptoms]
	// rests is what the evidence of the moment rests on.
	rests func(*evidence.Moment) evidence.Strength
	// near: it will be one soon: a stage at 80 % or more with clients in front of it.
	Near func(*symptoms.Symptoms) bool
	// full says that it belongs into the chain of full stages, depth where.
	Full  func(s *symptoms.Symptoms, lost model.Cause) bool
	Depth int
	// onlyFull: as the cause of a packet it says no more than that the queue was full.
	OnlyFull bool

	// What is said of it: why connections are not taken in, as the rest of a sentence
	// about them; the numbers it was judged from; what to change, in one text and in steps.
	Because  func(*symptoms.Symptoms, model.Verdict) string
	Evidence func(*symptoms.Symptoms, model.Verdict) string
	Advice   func(*symptoms.Symptoms, model.Verdict) string
	Steps    func(*symptoms.Symptoms, model.Verdict) ([]model.Step, string)
	Book     Runbook // without what follows from the rest of this
}

// Excluded means that it is not what dropped the packets of the interval.
func (c *Cause) Excluded(s *symptoms.Symptoms) bool {
	return slices.ContainsFunc(c.dropped, func(r refutation[*symptoms.Symptoms]) bool { return r.by(s) })
}

// Outranking is the cause that comes first in the order among those that hold for certain,
// else among those that possibly do; the zero value where none does.
func Outranking(all []Cause, of func(*Cause) Certainty) Cause {
	var best *Cause
	for i := range all {
		switch of(&all[i]) {
		case Surely:
			return all[i]
		case Possibly:
			if best == nil {
				best = &all[i]
			}
		}
	}
	if best == nil {
		return Cause{}
	}
	return *best
}

// rests on the same whatever the moment is.
func rests(s evidence.Strength) func(*evidence.Moment) evidence.Strength {
	return func(*evidence.Moment) evidence.Strength { return s }
}

// QueueCause names what keeps the accept queue from being emptied. A limit
// counts when either snapshot shows it: the drops lie between the two.
func QueueCause(all []Cause, p reading.Pair) model.Cause {
	c := Outranking(all, func(c *Cause) Certainty { return c.around.Of(p) })
	if c.Name == model.CauseNone {
		return model.CauseAcceptQueue
	}
	return c.Name
}

func (r *rule[E]) names() []string { return names(r.refuted) }

func names[E any](all []refutation[E]) (out []string) {
	for i := range all {
		out = append(out, all[i].name)
	}
	return out
}

// Runbook is what to know of a cause, or of another finding: what it means, what to check
// and to change. Its texts are Markdown of one paragraph each, "" where there is nothing to
// say; docs/troubleshooting.md has one section a runbook.
type Runbook struct {
	Code    string // a model.Cause, or another finding's code
	Title   string // what it is, in a few words
	Seen    string // what it is said of
	Clients string // what clients see
	Check   string
	Change  string
	Vain    string // what does not help

	// Of causes alone: the evidence that shows it, what excludes it all the same, and
	// what is said where neither is had. Drops: a dropped packet may be counted under it.
	Holds     string
	Refuted   []string
	Otherwise string
	Drops     bool
}

// IsCause reports whether it is a cause, and no other finding.
func (r *Runbook) IsCause() bool { return r.Holds != "" }

// Refutations are the names of what excludes the cause, of all kinds of evidence, each once.
func (c *Cause) Refutations() []string {
	var out []string
	for _, name := range slices.Concat(c.moment.names(), c.around.names(), names(c.dropped), c.Now.names()) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
