package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

// steps are what to do about the verdict's cause, and the tempting change that does not
// help.
func (j *judge) steps(v model.Verdict) (do []model.Step, not string) {
	if v.Status == model.StatusOK && v.Cause == model.CauseNone {
		return nil, ""
	}
	switch v.Cause {
	case model.CauseMaxThreads:
		return j.maxThreadsSteps(v)
	case model.CauseDownstream:
		return j.downstreamSteps(), "More threads: they only move the wait to " + peerName(j.waits.peer) + "."
	case model.CauseConnectionPool:
		return j.poolSteps(), "More threads: they would wait for one of the same connections."
	case model.CauseMaxConnections:
		return j.maxConnectionsSteps(v)
	case model.CauseKeepAliveIdle:
		return j.keepAliveSteps(v)
	case model.CauseExecutorQueue:
		return j.executorSteps(v)
	case model.CauseOpenFiles:
		return j.openFilesSteps()
	case model.CauseJVMPause:
		return j.pauseSteps()
	case model.CauseCPUThrottled:
		return j.throttledSteps(), "More threads: the quota is used up sooner in each period."
	case model.CauseCPUSaturated:
		return []model.Step{action("Give the process more CPU, or shed load before it gets here")},
			"More threads, connections or acceptCount: they only add to what waits for a CPU."
	case model.CauseSlowAccept:
		return j.slowAcceptSteps()
	case model.CauseBacklogClamped:
		return j.clampedSteps()
	case model.CauseSynBacklog:
		return j.synBacklogSteps(), "More threads or connections: these clients have not come that far."
	case model.CauseListenerClosed:
		return j.closedSteps()
	case model.CauseNoListener:
		return j.noListenerSteps(), "Any of Tomcat's limits: none refuses a connection on Linux."
	case model.CauseEphemeralPorts:
		return j.portSteps(), "Any of Tomcat's limits: they have no part in it."
	}
	return j.unknownSteps(), ""
}
