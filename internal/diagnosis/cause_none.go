package diagnosis

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// unknownSteps are what to look at where the limit behind a full stage is not known.
func (j *judge) unknownSteps() []model.Step {
	switch {
	case j.requestsStand() || j.standsLong():
		return []model.Step{j.dumpStep("Ask the JVM what its acceptor, poller and workers do")}
	case !isTomcat(j.Now) && j.Now.Connector != nil && j.Now.Connector.Server == "other":
		return []model.Step{action("See what " + serverName(j.Now) + " is busy with, and which limits of its own it has")}
	case inexact(j.Now):
		return []model.Step{command("Look again: not all connections could be counted", j.again(""))}
	case slotsUncounted(j.Now):
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
