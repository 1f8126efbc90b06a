package observer

import (
	"errors"
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// processMemory is what is kept of a process from scan to scan.
type processMemory struct {
	runDelay *threads.RunDelayCounter
	jvm      *hsperf.File
	still    evidence.Standstill
	files    files
	refused  *uint64 // by the pids limit, when it was first read
}

// readJVM reads the JVM's own counters, where it has any that may be read.
func (m *processMemory) readJVM(open func() (*hsperf.File, error), now time.Time, p *model.Process, who string, miss *facts.Missing) {
	if !model.IsJVM(p.Comm) {
		return
	}
	if m.jvm == nil {
		jvm, err := open()
		switch {
		case errors.Is(err, discovery.ErrUnexamined):
			return
		case errors.Is(err, hsperf.ErrNoPerfData):
			miss.Add(noPerfData(p.PID))
			return
		case !miss.OK(p.PID, "JVM counters (hsperfdata)", who, err):
			return
		}
		m.jvm = jvm
	}
	if jvm, err := m.jvm.Read(); err == nil {
		p.SafepointTime, p.GCTime = jvm.SafepointTime, jvm.GCTime
		p.InSafepoint = m.inSafepoint(now, &jvm)
	}
}

// inSafepoint is how long the safepoint under way has lasted, nil when none is
// known to be.
func (m *processMemory) inSafepoint(now time.Time, jvm *hsperf.JVM) *time.Duration {
	if jvm.Safepoints == nil || jvm.SafepointTime == nil || jvm.ApplicationTime == nil || jvm.Started == nil {
		return nil // an old JVM lacks the counters
	}
	s := m.still.Next(now, evidence.Counters{
		Begun: *jvm.Safepoints, Ran: *jvm.ApplicationTime, Stood: *jvm.SafepointTime, Collecting: jvm.Collecting, Started: *jvm.Started,
	})
	if !s.UnderWay {
		return nil
	}
	return &s.Lasted
}

// noPerfData is what a JVM without counters lacks most often: HotSpot names the
// file after its user and makes none for a uid without a name, which is what
// many containers run as.
func noPerfData(pid int) model.Unavailable {
	return model.Unavailable{
		What: fmt.Sprintf("JVM counters (hsperfdata) of pid %d", pid),
		Why:  "the JVM writes none",
		How:  "give its uid a name in the container's /etc/passwd; no -XX:-UsePerfData, no -XX:+PerfDisableSharedMem",
	}
}

func (m *processMemory) close() {
	if m.jvm != nil {
		_ = m.jvm.Close()
	}
}
