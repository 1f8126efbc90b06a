package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// certainty is how surely evidence shows a cause.
type certainty int

const (
	not      certainty = iota
	possibly           // it is the cause where nothing else is certain
	surely
)

func when(is bool, c certainty) certainty {
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
	holds   func(E) certainty // nil: this evidence never shows it
	refuted []refutation[E]
}

func (r *rule[E]) of(e E) certainty {
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

// cause is one entry of the catalogue.
type cause struct {
	name model.Cause

	// When it is the cause of a dropped packet by the process and its acceptor at that
	// moment, and by two readings around it; and of the present state of a listener.
	moment rule[*evidence.Moment]
	around rule[reading.Pair]
	now    rule[*judge]
	// rests is what the evidence of the moment rests on.
	rests func(*evidence.Moment) evidence.Strength
	// near: it will be one soon: a stage at 80 % or more with clients in front of it.
	near func(*judge) bool
	// full says that it belongs into the chain of full stages, depth where.
	full  func(*judge) bool
	depth int
	// onlyFull: as the cause of a packet it says no more than that the queue was full.
	onlyFull bool

	// What is said of it: why connections are not taken in, as the rest of a sentence
	// about them; the numbers it was judged from; what to change, in one text and in steps.
	because  func(*judge, model.Verdict) string
	evidence func(*judge, model.Verdict) string
	advice   func(*judge, model.Verdict) string
	steps    func(*judge, model.Verdict) ([]model.Step, string)
	book     Runbook // without what follows from the rest of this
}

// outranking is the cause that comes first in the order among those that hold for certain,
// else among those that possibly do; the zero value where none does.
func outranking(all []cause, of func(*cause) certainty) cause {
	var best *cause
	for i := range all {
		switch of(&all[i]) {
		case surely:
			return all[i]
		case possibly:
			if best == nil {
				best = &all[i]
			}
		}
	}
	if best == nil {
		return cause{}
	}
	return *best
}

// rests on the same whatever the moment is.
func rests(s evidence.Strength) func(*evidence.Moment) evidence.Strength {
	return func(*evidence.Moment) evidence.Strength { return s }
}

// queueCause names what keeps the accept queue from being emptied. A limit
// counts when either snapshot shows it: the drops lie between the two.
func queueCause(all []cause, p reading.Pair) model.Cause {
	c := outranking(all, func(c *cause) certainty { return c.around.of(p) })
	if c.name == model.CauseNone {
		return model.CauseAcceptQueue
	}
	return c.name
}
