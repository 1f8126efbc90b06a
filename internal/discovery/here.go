package discovery

import (
	"context"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// here examines in this very process: for tests. The product starts a process
// that gives up everything first; see Children.
type here struct{ proc hostproc.FS }

func (h here) Examine(_ context.Context, r Request) (*Examination, PerfData, error) {
	s, err := newSubject(h.proc, r)
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
