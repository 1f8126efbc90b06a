package facts

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Missing collects what could not be read, each thing once.
type Missing struct {
	List []model.Unavailable
	seen map[string]bool
}

// Add takes what is not in it yet.
func (m *Missing) Add(list ...model.Unavailable) {
	if m.seen == nil {
		m.seen = make(map[string]bool)
	}
	for _, u := range list {
		if !m.seen[u.What] {
			m.seen[u.What] = true
			m.List = append(m.List, u)
		}
	}
}

// OK is true when err is nil; otherwise the thing is named with its remedy.
func (m *Missing) OK(pid int, what, how string, err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, hostproc.ErrNoProcess), errors.Is(err, hostproc.ErrNotSupported):
		return false
	case errors.Is(err, fs.ErrPermission):
		m.Add(model.Unavailable{What: fmt.Sprintf("%s of pid %d", what, pid), Why: "permission denied", How: how})
	default:
		m.Add(model.Unavailable{What: fmt.Sprintf("%s of pid %d", what, pid), Why: err.Error()})
	}
	return false
}

// Process names a process of which something could not be read.
func (m *Missing) Process(pid int, what string, err error) {
	if errors.Is(err, hostproc.ErrInvisible) {
		m.Add(model.Unavailable{
			What: fmt.Sprintf("pid %d", pid), Why: "invisible: /proc is mounted with hidepid",
			How: "add the user to the group of the gid= mount option, or run as root",
		})
		return
	}
	m.OK(pid, what, "run as root", err)
}
