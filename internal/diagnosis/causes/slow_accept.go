package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// slowAccept: connections come faster than they are accepted, and no limit is reached.
func slowAccept() Cause {
	return Cause{
		Name: model.CauseSlowAccept,
		moment: rule[*evidence.Moment]{holds: func(m *evidence.Moment) Certainty {
			return When(m.Accepting() || m.AcceptsGoOn() || m.Room() && m.Accepted(), Possibly)
		}},
		rests: func(m *evidence.Moment) evidence.Strength {
			if m.Accepting() || m.AcceptsGoOn() {
				return evidence.StrengthAcceptor
			}
			return evidence.StrengthPhases
		},
		around: rule[reading.Pair]{holds: func(p reading.Pair) Certainty {
			return When(p.Now != nil && reading.ConnectionLimit(p.Now) != reading.LimitUnknown, Possibly)
		}, refuted: []refutation[reading.Pair]{
			{nobodyTaken, func(p reading.Pair) bool { return p.NothingAccepted() > 0 }},
			{"the oldest in the accept queue was the oldest before", reading.Pair.OldestStands},
			{"a worker would have had to accept (NIO2), and all were busy", func(p reading.Pair) bool {
				return reading.AcceptsWithWorkers(p.Now) && p.Either(reading.AllThreadsBusy)
			}},
			{"it is not certain that maxConnections is what is configured", func(p reading.Pair) bool { return reading.UncertainLimit(p.Now) }},
			{"not all connections could be counted", func(p reading.Pair) bool { return reading.Inexact(p.Now) }},
			{"slots that reset clients hold have not been counted", func(p reading.Pair) bool { return reading.SlotsUncounted(p.Now) }},
		}},
		dropped: []refutation[*symptoms.Symptoms]{
			{nobodyTaken, func(s *symptoms.Symptoms) bool { return s.NothingAccepted() > 0 }},
			{"clients reset as many connections meanwhile as seem to be free, which the server may have held", (*symptoms.Symptoms).ResetMayHaveFilled},
			{"nobody has begun to connect meanwhile: the packets are of clients that came before", func(s *symptoms.Symptoms) bool { return s.NobodyCame() > 0 }},
		},
		OnlyFull: true,
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			seems := ""
			if s.Undercounted() {
				seems = "apparently "
			}
			return " because connections " + seems + "came faster than " + reading.ServerName(s.Now) + " accepted them" + words.RoomInside(s)
		},
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.QueueEvidence(s, model.CauseSlowAccept, v)
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return adviseSlowAccept(s) },
		Steps:  func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) { return slowAcceptSteps(s) },
		Book: Runbook{
			Title:     "clients come faster than they are accepted",
			Seen:      "The accept queue was full and none of the limits behind it was reached: more clients came at once than the queue holds.",
			Change:    "Raise acceptCount and, if it is lower, `net.core.somaxconn`; then restart the server, since `listen()` takes both once.",
			Vain:      "More threads or connections: neither was used up.",
			Holds:     "the acceptor was in accept() or running in both readings around the drop; or connections were accepted meanwhile, and others were free, for certain",
			Otherwise: "accept_queue",
		},
	}
}

const nobodyTaken = "nobody was taken out of the accept queue between two readings"

func slowAcceptSteps(s *symptoms.Symptoms) (do []model.Step, not string) {
	if s.Now.AcceptQueue == nil {
		return unknownSteps(s), ""
	}
	to, _ := advice.QueueWanted(s)
	if !s.ThreadsFull && !s.Undercounted() {
		not = "More threads or connections: neither was used up."
	}
	return advice.BacklogSteps(s, to), not
}

// adviseSlowAccept: a burst has to fit into the queue while the acceptor works
// it off; a packet dropped in it stands for at most one client more. A minute of
// bursts and retransmissions is no burst, and no queue is to hold it.
func adviseSlowAccept(s *symptoms.Symptoms) string {
	q := s.Now.AcceptQueue
	if q == nil {
		return advice.Unknown(s)
	}
	vain := "More threads or connections would not help: neither was used up."
	if s.ThreadsFull || s.Undercounted() {
		vain = ""
	}
	to, holds := advice.QueueWanted(s)
	return phrase.Sentences(advice.BacklogChange(s, to), holds, vain)
}
