package observer

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
)

// lookAtProcess reads what /proc tells of an owner. What could not be read is
// named; a process that died meanwhile is nil.
func (s *Sampler) lookAtProcess(o *owner.Process, miss *missing) *model.Process {
	proc := s.src.Proc
	st, err := proc.Process(o.PID)
	if err != nil {
		miss.process(o.PID, "status", err)
		return nil
	}
	p := &model.Process{}
	p.PID, p.Comm, p.StartTime = o.PID, model.Escape(st.Comm), st.StartTime
	p.Threads, p.Stopped = new(st.Threads), st.Stopped()
	who := credentials(st)

	m := s.memory(p)
	p.OpenFiles = s.openFiles(m, o.PID, who, miss)
	p.OpenFilesLimit = s.filesLimit(m, o.PID, who, miss)
	if d, err := m.runDelay.Read(); err == nil {
		p.RunDelay = &d
	}
	m.lookAtJVM(s.src.Proc, s.opt.Now(), p, who, miss)
	p.CPUUsed = &st.CPUTime
	s.lookAtCgroup(p)
	return p
}

func (s *Sampler) lookAtCgroup(p *model.Process) {
	cg, err := s.src.Proc.Cgroup(p.PID)
	if err != nil {
		return
	}
	p.Container, p.PodUID = model.Escape(cg.ContainerID), model.Escape(cg.PodUID)
	p.CPULimit, p.MemoryLimit = cg.CPULimit, cg.MemoryLimit
	p.CPUThrottled, p.CPUPeriods, p.CPUPeriodsThrottled = cg.Throttled, cg.NrPeriods, cg.NrThrottled
	if cg.Used != nil {
		p.CPUUsed = cg.Used
	}
	if cg.PidsLimit != nil {
		p.PIDsLimit = new(int(*cg.PidsLimit))
	}
}

func credentials(p hostproc.Process) string {
	return fmt.Sprintf("run as uid %d and gid %d, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", p.UIDs[1], p.GIDs[1])
}

// missing collects what could not be seen, each thing once.
type missing struct {
	list []model.Unavailable
	seen map[string]bool
}

func (m *missing) add(u model.Unavailable) {
	if m.seen == nil {
		m.seen = make(map[string]bool)
	}
	if !m.seen[u.What] {
		m.seen[u.What] = true
		m.list = append(m.list, u)
	}
}

// ok is true when err is nil; otherwise the thing is named with its remedy.
func (m *missing) ok(pid int, what, how string, err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, hostproc.ErrGone), errors.Is(err, hostproc.ErrNotSupported):
		return false
	case errors.Is(err, fs.ErrPermission):
		m.add(model.Unavailable{What: fmt.Sprintf("%s of pid %d", what, pid), Why: "permission denied", How: how})
	default:
		m.add(model.Unavailable{What: fmt.Sprintf("%s of pid %d", what, pid), Why: err.Error()})
	}
	return false
}

func (m *missing) process(pid int, what string, err error) {
	if errors.Is(err, hostproc.ErrInvisible) {
		m.add(model.Unavailable{
			What: fmt.Sprintf("pid %d", pid), Why: "invisible: /proc is mounted with hidepid",
			How: "add the user to the group of the gid= mount option, or run as root",
		})
		return
	}
	m.ok(pid, what, "run as root", err)
}
