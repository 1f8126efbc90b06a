package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	s := &subject{handles: h, started: startOf(proc, h.Process), how: remedy(h.Process)}
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

// startOf is when a process was started, by today's clock.
func startOf(proc hostproc.FS, p hostproc.Process) time.Time {
	boot, err := proc.BootTime()
	if err != nil {
		return time.Time{}
	}
	return boot.Add(time.Duration(p.StartTime) * (time.Second / hostproc.UserHZ))
}

// sameUser says that we have a process's user and group.
func sameUser(p hostproc.Process) bool {
	return p.UIDs[3] == uint32(os.Geteuid()) && p.GIDs[3] == uint32(os.Getegid())
}

// here examines in this very process: for tests. The product starts a process
// that gives up everything first; see Children.
type here struct{ Proc hostproc.FS }

func (h here) Examine(_ context.Context, r Request) (*Examination, PerfData, error) {
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

// examine finds out what the process is. It reads what the process wrote and
// named, and may never come back.
func (s *subject) examine() (*Examination, error) {
	t := look(s)
	defer t.files.close()
	f := identify(t)
	doubtLate(f, t)
	if !s.handles.Same() {
		return nil, fmt.Errorf("discovery: pid %d: %w", t.pid, hostproc.ErrGone)
	}
	return &Examination{Known: t.known, pid: t.pid, found: *f, missing: t.missing, files: t.files.stamps(), numbers: numbersIn(t.args)}, nil
}
