package examine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sandbox"
)

// Serve is the work of a process that Children started: one examination. It opens
// what takes privileges, becomes the user of the observed process, gives up
// everything but reading below that one's folders, and only then reads what a
// stranger wrote.
func Serve(proc hostproc.FS, in io.Reader, out io.Writer) error {
	text, err := serveOne(proc, in)
	if err != nil {
		text, err = json.Marshal(answer{Failure: clean(err.Error())})
	}
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

func serveOne(proc hostproc.FS, in io.Reader) ([]byte, error) {
	var r Request
	if err := json.NewDecoder(io.LimitReader(in, maxText)).Decode(&r); err != nil {
		return nil, fmt.Errorf("%w: the request", errAnswer)
	}
	if err := errors.Join(sandbox.DieWithParent(), sandbox.EndWithin(childDeadline+endsWithin), sandbox.Limit(childLimits())); err != nil {
		return nil, err
	}
	s, err := newSubject(proc, r)
	if err != nil {
		return nil, err
	}
	if err := s.becomeIts(); err != nil {
		return nil, err
	}
	e, err := s.examine()
	if err != nil {
		return nil, err
	}
	return e.encode()
}

// becomeIts takes the rights of the observed process. Where they cannot be taken
// only what every user may read is left.
func (s *subject) becomeIts() error {
	h := s.handles
	id := sandbox.Identity{UID: h.Process.UIDs[3], GID: h.Process.GIDs[3], Groups: h.Groups}
	java := model.IsJVM(h.Process.Comm)
	if java && !sandbox.MayBecome(id) {
		s.openJVM() // with whatever privileges there are; see AdoptJVM for what it must be
	}
	err := sandbox.Become(id)
	if s.everyone = errors.Is(err, sandbox.ErrIdentity); err != nil && !s.everyone {
		return err
	}
	if err := sandbox.DieWithParent(); err != nil {
		return err
	}
	if java {
		s.openJVM()
	}
	s.pass()
	var folders []*os.File
	for _, handle := range []hostproc.Handle{h.Root, h.Cwd} {
		if handle.Err == nil {
			folders = append(folders, handle.File)
		}
	}
	return sandbox.Confine(folders...)
}

// dieWithUs lets the kernel kill a child when the thread that starts it ends.
func dieWithUs(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

func childLimits() sandbox.Limits {
	return sandbox.Limits{Memory: childMemory, CPU: uint64(childCPU.Seconds()), Files: childFiles}
}
