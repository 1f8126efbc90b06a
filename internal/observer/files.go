package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/openfiles"
)

// rarely is how often that is read again which hardly ever changes: the
// processes' limits.
const rarely = 10 * time.Second

// files is what is remembered of a process's open files.
type files struct {
	open    *int
	openAt  time.Time
	limit   *int
	limitAt time.Time
}

// fewFiles are counted at every scan, one by one if it must be.
const fewFiles = 1000

// due reports whether to count again. atOnce: the kernel has the number.
func (f *files) due(now time.Time, atOnce bool) bool {
	return f.open == nil || atOnce || *f.open < fewFiles || now.Sub(f.openAt) >= rarely
}

func (m *processMemory) openFiles(proc hostproc.FS, now time.Time, pid int, who string, miss *facts.Missing) *int {
	if !m.files.due(now, proc.CountsOpenFiles()) {
		return m.files.open
	}
	m.files.open = nil
	if n, err := openfiles.Count(proc, pid); miss.OK(pid, "open files", who, err) {
		m.files.open, m.files.openAt = &n, now
	}
	return m.files.open
}

// filesLimit is read again every ten seconds only (prlimit(2) may change it).
func (m *processMemory) filesLimit(proc hostproc.FS, now time.Time, pid int, who string, miss *facts.Missing) *int {
	if m.files.limit != nil && now.Sub(m.files.limitAt) < rarely {
		return m.files.limit
	}
	m.files.limit = nil
	if n, err := openfiles.Limit(proc, pid); miss.OK(pid, "limits", who, err) {
		m.files.limit, m.files.limitAt = &n, now
	}
	return m.files.limit
}
