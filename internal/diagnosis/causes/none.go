package causes

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/droppoints"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// acceptQueueFull: packets were dropped at a full accept queue, and nothing names what is
// behind it. As a verdict it is no cause, see named.
func acceptQueueFull() Cause {
	c := Unknown()
	c.Name, c.OnlyFull = model.CauseAcceptQueue, true
	c.Book = Runbook{
		Title:     "a full accept queue, and what is behind it is not known",
		Seen:      "Packets were dropped at a full accept queue, and nothing of that moment could be read that names the limit behind it.",
		Change:    "Give tcpdiag what it lacked; `unavailable` lists it: the process's uid and gid, or the capabilities, or the limits by hand (`--max-connections`).",
		Holds:     "packets were dropped at a full accept queue",
		Otherwise: "nothing",
	}
	c.Near = func(s *symptoms.Symptoms) bool { return s.StageHigh(reading.StageAcceptQueue) }
	c.Full, c.Depth = func(s *symptoms.Symptoms, _ model.Cause) bool { return s.QueueFull || s.Overflowed() > 0 }, 20
	return c
}

// Unknown is what is said where no cause is known.
func Unknown() Cause {
	return Cause{
		Because:  becauseUnknown,
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string { return words.QueueEvidence(s, v.Cause, v) },
		Advice:   func(s *symptoms.Symptoms, _ model.Verdict) string { return advice.Unknown(s) },
		Steps:    func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) { return unknownSteps(s), "" },
	}
}

func becauseNothing(s *symptoms.Symptoms, _ model.Verdict) string { return "" }

// onlyRepeated: packets were dropped while nobody began to connect, and nothing else is known that keeps
// clients out.
func onlyRepeated(s *symptoms.Symptoms) bool {
	return s.Losses().DroppedPackets > 0 && s.NobodyCame() > 0 && s.NothingAccepted() == 0
}

// becauseUnknown says what is missing to know why connections are not taken in.
func becauseUnknown(s *symptoms.Symptoms, v model.Verdict) string {
	if v.Cause != model.CauseNone {
		return ""
	}
	if s.RefusedEarlier() {
		return "they came before it listened"
	}
	if s.OnlyUnanswered() {
		return "why they had no answer is unknown"
	}
	if s.Losses().DroppedPackets == 0 && s.TurnsAway() {
		return "why clients failed is unknown: their packets may have been dropped before"
	}
	if onlyRepeated(s) {
		return "; nobody has begun to connect for " + phrase.Seconds(s.NobodyCame()) + ": they are of clients that came before, and may have left"
	}
	if s.FullBefore() && whyUnknown(s) == "" {
		return phrase.Sprintf("; it is not full any more, and whether all %s were taken at that moment was not seen", phrase.Count(s.Now.Connector.MaxConnections.Value, "connection"))
	}
	fact := ""
	if s.NothingAccepted() > 0 {
		fact = "; " + words.NothingAccepted(s)
	}
	return fact + "; what holds it up is unknown" + whyUnknown(s)
}

// whyUnknown is what is missing.
func whyUnknown(s *symptoms.Symptoms) string {
	switch {
	case otherServer(s) && reading.ConnectionLimit(s.Now) != reading.LimitKnown:
		return ": the limits of " + reading.ServerName(s.Now) + " are not known"
	case reading.Inexact(s.Now):
		return ": not all connections could be counted"
	case reading.UncertainLimit(s.Now):
		return phrase.Sprintf(": it is not certain that maxConnections is %d",
			s.Now.Connector.MaxConnections.Value)
	case reading.SlotsUncounted(s.Now):
		return ": slots that are held by connections which clients reset have not been counted"
	}
	if roomKnown(s) {
		return ""
	}
	return " while maxConnections is not known"
}

// otherServer: what listens is none of the servers whose limits are known.
func otherServer(s *symptoms.Symptoms) bool {
	return !reading.IsTomcat(s.Now) && s.Now.Connector != nil && s.Now.Connector.Kind().Name == model.ServerOther().Name
}

// noJVM: what listens has no JVM that could be asked, or is not seen at all.
func noJVM(s *symptoms.Symptoms) bool {
	p := s.Now.Process
	return p == nil && !reading.IsTomcat(s.Now) || otherServer(s) && p != nil && p.Comm != "" && !model.IsJVM(p.Comm)
}

// unknownSteps are what to look at where the limit behind a full stage is not known.
func unknownSteps(s *symptoms.Symptoms) []model.Step {
	switch {
	case s.RefusedEarlier():
		return []model.Step{
			advice.Action("Read the application's log of that time: why it was stopped or started"),
			advice.Action("Before a restart, take the instance out of the load balancer, and give it back when it answers (a readiness probe by HTTP)"),
		}
	case s.WorkerStands() || s.SilentPeer() != nil:
		return advice.WaitSteps(s)
	case s.OnlyStrangers() && !s.FailsUnseen() && !s.LeftInside() && s.Losses().DroppedPackets == 0:
		return droppoints.StrangersSteps(s)
	case s.SomeUnanswered() && s.OnlyUnanswered() && !s.LeftInside() && !noJVM(s):
		return []model.Step{advice.DumpStep(s, "Nothing, where that was a person who left the page, or a long poll that its client ended; where more leave like that, see what the threads do with their requests")}
	case noJVM(s) && (s.OnlyUnanswered() || s.LongUnanswered() || s.RequestsStand() || s.StandsLong() || s.NothingAccepted() > 0 && roomKnown(s)):
		return seeOther(s)
	case s.OnlyUnanswered() || s.LongUnanswered():
		return []model.Step{advice.DumpStep(s, "See what the threads do with their requests")}
	case s.FailsUnseen(), onlyRepeated(s):
		return []model.Step{advice.Command("Look for longer, while clients fail", again(s, " --interval 10s"))}
	case s.CutOff():
		return advice.MissingAddressSteps(s)
	case s.LeftInside():
		return []model.Step{
			advice.DumpStep(s, "See where the requests stand whose clients have closed"),
			advice.Action("Bound what the handlers wait for, and asynchronous requests, below the clients' timeout; or let the clients wait for longer than a request takes"),
			advice.Action("If they are long polls, which their clients end and begin again: answer them before the clients' timeout, or what is sent to those that have left is lost"),
		}
	case s.Unacknowledged():
		return advice.UnacknowledgedSteps()
	case s.Unheard() > 0:
		return unheardSteps(s)
	case s.TLSFails():
		return advice.TLSSteps(s)
	case s.Forgotten():
		return advice.ForgottenSteps(s)
	case s.LeftUnanswered() && !noJVM(s):
		return []model.Step{advice.DumpStep(s, "See what the threads do with their requests")}
	case !reading.OtherJVM(s.Now) && (s.RequestsStand() || s.StandsLong() || s.NothingAccepted() > 0 && roomKnown(s)):
		return []model.Step{advice.DumpStep(s, "Ask the JVM what its acceptor, poller and workers do")}
	case otherServer(s):
		return seeOther(s)
	case reading.OtherJVM(s.Now):
		do := []model.Step{advice.DumpStep(s, "See what its threads do, and which limits of its own the server has")}
		if s.Now.Connector.Server == model.ServerJVM().Name {
			do = append(do, advice.Command("If it is a Tomcat that was not recognised, give its limits", again(s, " --max-connections N --max-threads N")))
		}
		return do
	case reading.Inexact(s.Now):
		return []model.Step{advice.Command("Look again: not all connections could be counted", again(s, ""))}
	case reading.SlotsUncounted(s.Now):
		return []model.Step{advice.Command("Look for longer, as root: slots that reset clients hold have not been counted", "sudo "+again(s, " --interval 5s"))}
	case s.FullBefore():
		return []model.Step{advice.Command("Look for longer, while it happens: of the moments at which packets were dropped too little could be read", again(s, " --interval 10s"))}
	}
	return []model.Step{advice.Command("Give the limits that could not be found", again(s, " --max-connections N --max-threads N"))}
}

func seeOther(s *symptoms.Symptoms) []model.Step {
	return []model.Step{advice.Action("See what " + reading.ServerName(s.Now) + " is busy with, and which limits of its own it has")}
}

// unheardSteps are what to do about a rule that takes what connected clients send.
func unheardSteps(s *symptoms.Symptoms) (do []model.Step) {
	for _, p := range droppoints.Rules(s, s.Unheard()) {
		do = append(do, p.Step)
	}
	if len(do) == 0 {
		do = append(do, advice.Command("See which rules drop or reject what belongs to no tracked connection (ct state invalid)", "nft list ruleset; iptables-save -c"))
	}
	return append(do,
		advice.Command("See for how long an idle connection is tracked, and give it longer than clients keep one", "sysctl net.netfilter.nf_conntrack_tcp_timeout_established"),
		advice.Action(phrase.Sprintf("Or end idle connections before that: %s below it%s", advice.KeepAliveSetting().Name(s.Now), advice.IdleTimeout(s))))
}

// again is the command that looks at this listener.
func again(s *symptoms.Symptoms, flags string) string {
	if p := s.Now.Process; p != nil && p.PID > 0 {
		return strings.TrimSpace(phrase.Sprintf("tcpdiag snapshot --pid %v", p.PID) + flags)
	}
	return phrase.Sprintf("tcpdiag snapshot --port %v", s.Now.Port) + flags
}

// roomKnown: connections are free, by the limit that is known, or as none is held.
func roomKnown(s *symptoms.Symptoms) bool {
	if s.HoldsNobody() {
		return true
	}
	n, ok := reading.SlotsInUse(s.Now)
	limit := reading.ConnectionLimit(s.Now)
	return ok && (limit == reading.LimitNone || limit == reading.LimitKnown && n < s.Now.Connector.MaxConnections.Value)
}
