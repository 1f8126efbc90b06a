package discovery

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// examine finds out what the process is. It reads what the process wrote and
// named, and may never come back.
func (s *subject) examine() (*Examination, error) {
	t := look(s)
	defer t.files.close()
	f := identify(t)
	f.doubtLate(t)
	if !s.handles.Same() {
		return nil, fmt.Errorf("discovery: pid %d: %w", t.pid, hostproc.ErrGone)
	}
	return &Examination{Known: t.known, pid: t.pid, found: *f, missing: t.missing, files: t.files.stamps(), numbers: numbersIn(t.args)}, nil
}
