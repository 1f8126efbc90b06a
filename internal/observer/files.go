package observer

import "time"

// files is what is remembered of a process's open files.
type files struct {
	open    *int
	openAt  time.Time
	limit   *int
	limitAt time.Time
}

// fewFiles are counted at every scan, one by one if it must be.
const fewFiles = 1000

// due tells whether to count again. atOnce: the kernel has the number.
func (f *files) due(now time.Time, atOnce bool) bool {
	return f.open == nil || atOnce || *f.open < fewFiles || now.Sub(f.openAt) >= seldom
}

func (s *Sampler) openFiles(m *processMemory, pid int, who string, miss *missing) *int {
	now := s.opt.Now()
	if !m.files.due(now, s.src.Proc.CountsOpenFiles()) {
		return m.files.open
	}
	m.files.open = nil
	if n, err := s.src.Proc.OpenFiles(pid); miss.ok(pid, "open files", who, err) {
		m.files.open, m.files.openAt = &n, now
	}
	return m.files.open
}

// filesLimit is read again every ten seconds only (prlimit(2) may change it).
func (s *Sampler) filesLimit(m *processMemory, pid int, who string, miss *missing) *int {
	now := s.opt.Now()
	if m.files.limit != nil && now.Sub(m.files.limitAt) < seldom {
		return m.files.limit
	}
	m.files.limit = nil
	if n, err := s.src.Proc.OpenFilesLimit(pid); miss.ok(pid, "limits", who, err) {
		m.files.limit, m.files.limitAt = &n, now
	}
	return m.files.limit
}
