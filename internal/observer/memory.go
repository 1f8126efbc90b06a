package observer

import (
	"errors"
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// processMemory is what is kept of a process from scan to scan.
type processMemory struct {
	runDelay *hostproc.RunDelayCounter
	jvm      *hostproc.JVMFile
	jvmErr   error     // why there is no jvm
	jvmFirst time.Time // when it was looked for, first and last
	jvmLast  time.Time
	still    evidence.Standstill
	files    files
	refused  *uint64 // by the pids limit, when it was first read
}

// readJVM reads the JVM's own counters, where it has any that may be read.
func (m *processMemory) readJVM(proc hostproc.FS, now time.Time, p *model.Process, who string, miss *missing) {
	if !model.IsJVM(p.Comm) {
		return
	}
	if m.jvm == nil && m.jvmDue(now) {
		m.jvm, m.jvmErr = proc.OpenJVM(p.PID)
		m.jvmLast = now
	}
	if m.jvm == nil {
		if errors.Is(m.jvmErr, hostproc.ErrNoPerfData) {
			miss.add(noPerfData(p.PID))
			return
		}
		miss.ok(p.PID, "JVM counters (hsperfdata)", who, m.jvmErr)
		return
	}
	if jvm, err := m.jvm.Read(); err == nil {
		p.SafepointTime, p.GCTime = jvm.SafepointTime, jvm.GCTime
		p.InSafepoint = m.inSafepoint(now, &jvm)
	}
}

// inSafepoint is how long the safepoint under way has lasted, nil when none is
// known to be.
func (m *processMemory) inSafepoint(now time.Time, jvm *hostproc.JVM) *time.Duration {
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

// jvmPatience is how long a JVM that starts may take to publish its counters.
const jvmPatience = time.Minute

// jvmDue reports whether to look for the counters (again). Many a JVM never has
// any, and to look is to read all of /proc/PID/maps.
func (m *processMemory) jvmDue(now time.Time) bool {
	switch {
	case m.jvmFirst.IsZero():
		m.jvmFirst = now
		return true
	case !errors.Is(m.jvmErr, hostproc.ErrNoPerfData):
		return false // it will not be permitted later
	}
	return now.Sub(m.jvmLast) >= rarely && now.Sub(m.jvmFirst) <= jvmPatience
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
