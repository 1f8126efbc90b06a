package diagnosis

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// acceptQueueFull: packets were dropped at a full accept queue, and nothing names what is
// behind it. As a verdict it is no cause, see named.
func acceptQueueFull() cause {
	c := unknown()
	c.name, c.onlyFull = model.CauseAcceptQueue, true
	c.book = Runbook{
		Title:     "a full accept queue, and what is behind it is not known",
		Seen:      "Packets were dropped at a full accept queue, and nothing of that moment could be read that names the limit behind it.",
		Change:    "Give tcpdiag what it lacked; `unavailable` lists it: the process's uid and gid, or the capabilities, or the limits by hand (`--max-connections`).",
		Holds:     "packets were dropped at a full accept queue",
		Otherwise: "nothing",
	}
	c.near = func(j *judge) bool { return j.stageHigh(reading.StageAcceptQueue) }
	c.full, c.depth = func(j *judge) bool { return j.queueFull || j.overflowed() > 0 }, 20
	return c
}

// unknown is what is said where no cause is known.
func unknown() cause {
	return cause{
		because:  (*judge).becauseUnknown,
		evidence: func(j *judge, v model.Verdict) string { return j.queueEvidence(v.Cause, v) },
		advice:   func(j *judge, _ model.Verdict) string { return j.adviseUnknown() },
		steps:    func(j *judge, _ model.Verdict) ([]model.Step, string) { return j.unknownSteps(), "" },
	}
}

func (j *judge) becauseNothing(model.Verdict) string { return "" }

// becauseUnknown says what is missing to know why connections are not taken in.
func (j *judge) becauseUnknown(v model.Verdict) string {
	if v.Cause != model.CauseNone {
		return ""
	}
	if j.onlyUnanswered() {
		return "why they had no answer is unknown"
	}
	if j.losses().DroppedPackets == 0 && j.turnsAway() {
		return "why clients failed is unknown: their packets may have been dropped before"
	}
	fact := ""
	if j.NothingAccepted() > 0 {
		fact = "; " + j.nothingAcceptedPhrase()
	}
	return fact + "; what holds it up is unknown" + j.whyUnknown()
}

// whyUnknown is what is missing.
func (j *judge) whyUnknown() string {
	switch {
	case !reading.IsTomcat(j.Now) && j.Now.Connector != nil && j.Now.Connector.Kind().Name == model.ServerOther().Name:
		return ": the limits of " + reading.ServerName(j.Now) + " are not known"
	case reading.Inexact(j.Now):
		return ": not all connections could be counted"
	case reading.UncertainLimit(j.Now):
		return phrase.Sprintf(": it is not certain that maxConnections is %d",
			j.Now.Connector.MaxConnections.Value)
	case reading.SlotsUncounted(j.Now):
		return ": slots that are held by connections which clients reset have not been counted"
	}
	if j.roomKnown() {
		return ""
	}
	return " while maxConnections is not known"
}

// unknownSteps are what to look at where the limit behind a full stage is not known.
func (j *judge) unknownSteps() []model.Step {
	switch {
	case j.onlyUnanswered():
		return []model.Step{j.dumpStep("See what the threads do with their requests")}
	case j.failsUnseen():
		return []model.Step{command("Look for longer, while clients fail", j.again(" --interval 10s"))}
	case j.requestsStand() || j.standsLong() || j.NothingAccepted() > 0 && j.roomKnown():
		return []model.Step{j.dumpStep("Ask the JVM what its acceptor, poller and workers do")}
	case !reading.IsTomcat(j.Now) && j.Now.Connector != nil && j.Now.Connector.Kind().Name == model.ServerOther().Name:
		return []model.Step{action("See what " + reading.ServerName(j.Now) + " is busy with, and which limits of its own it has")}
	case reading.Inexact(j.Now):
		return []model.Step{command("Look again: not all connections could be counted", j.again(""))}
	case reading.SlotsUncounted(j.Now):
		return []model.Step{command("Look for longer, as root: slots that reset clients hold have not been counted", "sudo "+j.again(" --interval 5s"))}
	}
	return []model.Step{command("Give the limits that could not be found", j.again(" --max-connections N --max-threads N"))}
}

// again is the command that looks at this listener.
func (j *judge) again(flags string) string {
	if p := j.Now.Process; p != nil && p.PID > 0 {
		return strings.TrimSpace(phrase.Sprintf("tcpdiag snapshot --pid %v", p.PID) + flags)
	}
	return phrase.Sprintf("tcpdiag snapshot --port %v", j.Now.Port) + flags
}

// roomKnown: connections are free, by the limit that is known.
func (j *judge) roomKnown() bool {
	n, ok := reading.Held(j.Now)
	limit := reading.ConnectionLimit(j.Now)
	return ok && (limit == reading.LimitNone || limit == reading.LimitKnown && n < j.Now.Connector.MaxConnections.Value)
}
