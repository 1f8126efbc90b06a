package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func (j *judge) pauseSteps() (do []model.Step, not string) {
	const limits = "Any of Tomcat's limits: they have no part in it."
	switch {
	case stopped(j.Now) && j.Now.Process.Frozen:
		return []model.Step{action("Find out who froze it (docker pause, systemctl freeze, a checkpoint) and let it go on: docker unpause, systemctl thaw")}, limits
	case j.either(stopped) && j.Now.Process != nil:
		return []model.Step{
			action("Find out who stopped it: SIGSTOP, a debugger, a shell's job control"),
			command("Let it go on", phrase.Sprintf("kill -CONT %v", j.Now.Process.PID)),
		}, limits
	}
	first := action("See how full the heap is after a collection, and how long the pauses are (-Xlog:gc,safepoint)")
	if p := j.Now.Process; p != nil && p.PID > 0 {
		first = command("See how full the heap is; the collector's log has the pauses (-Xlog:gc,safepoint)", phrase.Sprintf("jcmd %v GC.heap_info", p.PID))
	}
	return []model.Step{first, action("Give it a larger heap (-Xmx), or a collector with short pauses (ZGC, Shenandoah)")},
		"More threads or connections: nothing runs in a pause."
}
