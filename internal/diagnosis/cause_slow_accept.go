package diagnosis

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// slowAccept: connections come faster than they are accepted, and no limit is reached.
func slowAccept() cause {
	return cause{
		name: model.CauseSlowAccept,
		moment: rule[*evidence.Moment]{holds: func(m *evidence.Moment) certainty {
			return when(m.Accepting() || m.AcceptsGoOn() || m.Room() && m.Accepted(), possibly)
		}},
		rests: func(m *evidence.Moment) evidence.Strength {
			if m.Accepting() || m.AcceptsGoOn() {
				return evidence.StrengthAcceptor
			}
			return evidence.StrengthPhases
		},
		around: rule[reading.Pair]{holds: func(p reading.Pair) certainty {
			return when(p.Now != nil && reading.ConnectionLimit(p.Now) != reading.LimitUnknown, possibly)
		}, refuted: []refutation[reading.Pair]{
			{"nobody was taken out of the accept queue between two readings", func(p reading.Pair) bool { return p.NothingAccepted() > 0 }},
			{"it is not certain that maxConnections is what is configured", func(p reading.Pair) bool { return reading.UncertainLimit(p.Now) }},
			{"not all connections could be counted", func(p reading.Pair) bool { return reading.Inexact(p.Now) }},
			{"slots that reset clients hold have not been counted", func(p reading.Pair) bool { return reading.SlotsUncounted(p.Now) }},
		}},
		onlyFull: true,
		because: func(j *judge, _ model.Verdict) string {
			seems := ""
			if j.undercounted() {
				seems = "apparently "
			}
			return " because connections " + seems + "came faster than " + reading.ServerName(j.Now) + " accepted them" + j.roomInside()
		},
		evidence: func(j *judge, v model.Verdict) string { return j.queueEvidence(model.CauseSlowAccept, v) },
		advice:   func(j *judge, _ model.Verdict) string { return j.adviseSlowAccept() },
		steps:    func(j *judge, _ model.Verdict) ([]model.Step, string) { return j.slowAcceptSteps() },
		book: Runbook{
			Title:     "clients come faster than they are accepted",
			Seen:      "The accept queue was full and none of the limits behind it was reached: more clients came at once than the queue holds.",
			Change:    "Raise acceptCount and, if it is lower, `net.core.somaxconn`; then restart the server, since `listen()` takes both once.",
			Vain:      "More threads or connections: neither was used up.",
			Holds:     "the acceptor was in accept() or running in both readings around the drop; or connections were accepted meanwhile, and others were free, for certain",
			Otherwise: "accept_queue",
		},
	}
}

func (j *judge) slowAcceptSteps() (do []model.Step, not string) {
	if j.Now.AcceptQueue == nil {
		return j.unknownSteps(), ""
	}
	to, _ := j.queueWanted()
	if !j.threadsFull && !j.undercounted() {
		not = "More threads or connections: neither was used up."
	}
	return j.backlogSteps(to), not
}

// adviseSlowAccept: a burst has to fit into the queue while the acceptor works
// it off; a packet dropped in it stands for at most one client more. A minute of
// bursts and retransmissions is no burst, and no queue is to hold it.
func (j *judge) adviseSlowAccept() string {
	q := j.Now.AcceptQueue
	if q == nil {
		return j.adviseUnknown()
	}
	vain := "More threads or connections would not help: neither was used up."
	if j.threadsFull || j.undercounted() {
		vain = ""
	}
	to, holds := j.queueWanted()
	return phrase.Sentences(j.backlogChange(to), holds, vain)
}

// queueWanted is a longer accept queue, and what it is enough for.
func (j *judge) queueWanted() (to int, holds string) {
	to, holds = j.queueNow()
	if steady := j.steady(reading.StageAcceptQueue, j.Now.AcceptQueue.Limit, to); steady > to {
		return steady, "The queue then holds the largest burst since the trouble began while it is accepted."
	}
	return to, holds
}

// queueNow is the same for the latest burst.
func (j *judge) queueNow() (to int, holds string) {
	q := j.Now.AcceptQueue
	dropped, burst := j.overflowed(), "the burst"
	if b := j.losses().Burst; b > 0 && b < dropped {
		dropped, burst = b, fmt.Sprintf("a burst like the largest, of which a second dropped %s,", phrase.Count(b, "packet"))
	}
	if clients, known := j.withoutRoom(); known && clients < dropped {
		dropped, burst = clients, fmt.Sprintf("the %s for which it had no place", j.orMore(clients))
	}
	to, holds = spare(q.Capacity()+int(dropped)), "The queue then holds "+burst+" while it is accepted; the clients in it wait instead of retrying after 1 s."
	if most := max(j.T.QueueMost, roundUp(2*q.Capacity())); to > most {
		to, holds = most, fmt.Sprintf("The %s are more than one burst, the same clients among them again and again: if that queue overflows too, look for what keeps %s from accepting.", phrase.Count(dropped, "dropped packet"), reading.ServerName(j.Now))
	}
	if step := atMost(q.Limit); to > step {
		to = step
		if step < q.Capacity()+int(dropped) {
			holds = fmt.Sprintf("A first step: the %s may be the same clients again and again.", phrase.Count(dropped, "dropped packet"))
		}
	}
	return to, holds
}
