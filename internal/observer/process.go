package observer

import (
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// read reads what /proc says of a process. What could not be read is named; of
// a process that has ended there is nil.
func (m *processMemory) read(proc hostproc.FS, jvm func() (*hsperf.File, error), now time.Time, pid int, miss *facts.Missing) *model.Process {
	st, err := proc.Process(pid)
	if err != nil {
		miss.Process(pid, "status", err)
		return nil
	}
	p := &model.Process{At: now}
	p.PID, p.Comm, p.StartTime = pid, model.Escape(st.Comm), st.StartTime
	p.Threads, p.Stopped = new(st.Threads), st.Stopped()
	who := credentials(st)
	p.OpenFiles = m.openFiles(proc, now, pid, who, miss)
	p.OpenFilesLimit = m.filesLimit(proc, now, pid, who, miss)
	if d, err := m.runDelay.Read(now); err == nil {
		p.RunDelay = &d
	}
	m.readJVM(jvm, now, p, who, miss)
	p.CPUUsed = &st.CPUTime
	m.readCgroup(proc, p)
	return p
}

func (m *processMemory) readCgroup(proc hostproc.FS, p *model.Process) {
	cg, err := cgroup.Of(proc, p.PID)
	if err != nil {
		return
	}
	p.Container, p.PodUID = model.Escape(cg.ContainerID), model.Escape(cg.PodUID)
	p.Frozen = cg.Frozen
	p.CPULimit, p.MemoryLimit = cg.CPULimit, cg.MemoryLimit
	p.CPUThrottled, p.CPUPeriods, p.CPUPeriodsThrottled = cg.Throttled, cg.NrPeriods, cg.NrThrottled
	if cg.Used != nil {
		p.CPUUsed = cg.Used
	}
	if cg.PidsLimit != nil {
		p.PIDsLimit = new(int(*cg.PidsLimit))
	}
	p.PIDsRefused = m.refusedSince(cg.PidsRefused)
}

// refusedSince is what has been refused since the first reading; a counter that
// went back is another group's.
func (m *processMemory) refusedSince(total *uint64) *uint64 {
	if total == nil {
		return nil
	}
	if m.refused == nil || *m.refused > *total {
		m.refused = total
	}
	return new(*total - *m.refused)
}

func credentials(p hostproc.Process) string {
	return fmt.Sprintf("run as uid %d and gid %d, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", p.UIDs[1], p.GIDs[1])
}
