package diagnosis

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func (j *judge) maxConnectionsSteps(v model.Verdict) (do []model.Step, not string) {
	if connectionLimit(j.Now) != limitKnown {
		return j.unknownSteps(), ""
	}
	threads := slices.Contains(v.Chain, model.CauseMaxThreads)
	to, _ := j.connectionsWanted()
	raise := func(text string) []model.Step { return j.raiseConnections(text, to) }
	switch {
	case j.slotsWithoutThread() && mostlyOutlived(j.Now):
		do = append(do, action("Limit the connections that the application keeps open (an idle timeout of the WebSocket session)"))
		return append(do, raise("Or give them room")...), j.acceptCountNot()
	case j.slotsWithoutThread():
		if t := j.Now.Connector.ConnectionTimeout; t == nil || t.Value <= 0 || t.Value > shortTimeout {
			do = append(do, connectionTimeoutSetting().changeTime(j, t, "End the requests that their clients never finish", shortTimeout))
		}
		return append(do, raise("If they are WebSockets or answered asynchronously, give them room")...), j.acceptCountNot()
	case threads && j.threadsFull && j.overflowed() > 0:
		do = j.threadSteps(v)
		return append(do, raise("Then let in those that are turned away")...), j.acceptCountNot()
	case threads && j.threadsFull:
		return j.threadSteps(v), "maxConnections: it only moves the wait from the accept queue into " + serverName(j.Now) + "."
	case threads:
		do = raise("Let more clients in")
		most, _ := maxThreads(j.Now)
		return append(do, maxThreadsSetting().change(j, j.Now.Connector.MaxThreads, "With as many threads: every thread is busy as well", most, max(to, most+1))), j.acceptCountNot()
	}
	return raise("Let more clients in"), j.acceptCountNot()
}

// raiseConnections is the change of maxConnections, after that of the open files if those
// would not suffice.
func (j *judge) raiseConnections(text string, to int) []model.Step {
	in := j.Now.Connector.MaxConnections
	return append(j.filesStep(to), maxConnectionsSetting().change(j, in, text, in.Value, to))
}
