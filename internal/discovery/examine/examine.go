package examine

import (
	"context"
	"fmt"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// examine finds out what the process is. It reads what the process wrote and
// named, and may never come back.
func (s *subject) examine() (*Examination, error) {
	t := observe(s)
	defer t.files.close()
	f := identify(t)
	doubtLate(f, t)
	if !s.handles.Same() {
		return nil, fmt.Errorf("discovery: pid %d: %w", t.pid, hostproc.ErrGone)
	}
	return &Examination{Known: t.known, pid: t.pid, Found: *f, Missing: t.missing, files: t.files.stamps(), Numbers: numbersIn(t.args)}, nil
}

// Here examines in this very process: for tests. The product starts a process
// that gives up everything first; see Children.
type Here struct{ Proc hostproc.FS }

// Examine reads what the process wrote and named.
func (h Here) Examine(_ context.Context, r Request) (*Examination, PerfData, error) {
	s, err := newSubject(h.Proc, r)
	if err != nil {
		return nil, PerfData{}, err
	}
	defer s.handles.Close()
	s.everyone = !sameUser(s.handles.Process)
	s.openJVM()
	data := PerfData{Err: s.jvmErr}
	if s.jvm != nil {
		data.File = s.jvm.File()
	}
	e, err := s.examine()
	return e, data, err
}

// sameUser says that we have a process's user and group.
func sameUser(p hostproc.Process) bool {
	return p.UIDs[3] == uint32(os.Geteuid()) && p.GIDs[3] == uint32(os.Getegid())
}
