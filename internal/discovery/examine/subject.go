package examine

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
)

// errNotItsUser says that files are read with the rights of everybody, as the
// process's own cannot be taken.
var errNotItsUser = errors.New("tcpdiag runs as another user and cannot take that one's rights")

// subject is a process whose handles are open, with what has to be asked while
// the privileges are there.
type subject struct {
	handles *hostproc.Handles
	started time.Time // zero when unknown
	how     string    // who may read a process's files
	// everyone: only what every user may read is read, because we are not the
	// process's user.
	everyone bool
	jvm      *hsperf.File // its performance data
	jvmErr   error        // why there is none
}

func newSubject(proc hostproc.FS, r Request) (*subject, error) {
	h, err := proc.Handles(r.PID, r.StartTime)
	if err != nil {
		return nil, err
	}
	s := &subject{handles: h, started: StartOf(proc, h.Process), how: remedy(h.Process)}
	if errors.Is(h.Root.Err, fs.ErrPermission) && sharesRoot(proc.Path(r.PID)) {
		h.Root.File, h.Root.Err = hostproc.FindFolder("/") // what everybody may read, we may
	}
	return s, nil
}

// files are the process's root and working directory.
func (s *subject) files() *files {
	mounts, err := s.handles.Mounts(hostproc.Disposable)
	open := func(h hostproc.Handle) folder {
		if err := errors.Join(h.Err, err); err != nil {
			return folder{err: err}
		}
		root, err := hostproc.NewRoot(h.File, mounts, s.everyone)
		return folder{root, err}
	}
	return newFiles(open(s.handles.Root), open(s.handles.Cwd), s.handles)
}

// remedy says who may read a process's environment, folders and files
// (PTRACE_MODE_READ: all ids equal, or CAP_SYS_PTRACE; environ and fd are the
// owner's alone to open, or CAP_DAC_READ_SEARCH's; and what the process names is
// opened with its own ids).
func remedy(p hostproc.Process) string {
	return fmt.Sprintf("run as uid %d and gid %d, or with CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SETUID and CAP_SETGID", p.UIDs[0], p.GIDs[0])
}

// StartOf is when a process was started, by today's clock.
func StartOf(proc hostproc.FS, p hostproc.Process) time.Time {
	boot, err := proc.BootTime()
	if err != nil {
		return time.Time{}
	}
	return boot.Add(time.Duration(p.StartTime) * (time.Second / hostproc.UserHZ))
}
