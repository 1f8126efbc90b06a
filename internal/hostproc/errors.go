package hostproc

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"syscall"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// The ways in which a process cannot be read. Missing permission is passed on
// and satisfies errors.Is(err, fs.ErrPermission).
var (
	// ErrNoProcess says that no such process exists, or that it has exited, only
	// waits for its parent (a zombie) and no longer has what was asked for.
	ErrNoProcess = errors.New("no such process")
	// ErrInvisible says that the process lives but /proc is mounted with
	// hidepid=2 and answers ENOENT for it.
	ErrInvisible = errors.New("process is hidden (proc is mounted with hidepid)")
	// ErrNotSupported is the answer of systems other than Linux, and of kernels
	// that lack the file.
	ErrNotSupported = procfile.ErrNotSupported
	// ErrMalformed says that a file of the kernel or the JVM does not have the
	// form its reader knows.
	ErrMalformed = procfile.ErrMalformed
	// ErrManyDescriptors says that a process has more descriptors than are followed.
	ErrManyDescriptors = fmt.Errorf("more than %d open files, which are not all looked at", MostDescriptors)
	// ErrManyThreads says the same of its threads.
	ErrManyThreads = fmt.Errorf("more than %d threads, which are not all looked at", MostThreads)
)

// MostThreads is of how many threads of a process a file is read for one answer, the first of them: each takes some microseconds.
const MostThreads = 1 << 15

// MostDescriptors is how many descriptors of a process, or of several for one answer, are followed: each takes a
// microsecond and a half, and whoever is in a container may often open a million.
const MostDescriptors = 1 << 17

// Wrap makes err a path that is read once: "hostproc: fd of pid 42: …".
func (fs FS) Wrap(pid int, what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("hostproc: %s of pid %d: %w", what, pid, fs.classify(pid, err))
}

// classify says why a file below /proc/PID does not exist. ESRCH comes from
// files that were opened while the process still lived.
func (fs FS) classify(pid int, err error) error {
	switch {
	case errors.Is(err, syscall.ESRCH):
		return ErrNoProcess
	case errors.Is(err, iofs.ErrPermission) && fs.exited(pid): // nobody may trace a zombie
		return ErrNoProcess
	case !errors.Is(err, iofs.ErrNotExist):
		return err
	}
	if _, statErr := os.Stat(fs.Path(pid)); statErr == nil {
		if fs.exited(pid) { // a zombie has lost its files and namespaces
			return ErrNoProcess
		}
		return fmt.Errorf("%w: %w", ErrNotSupported, err) // the kernel lacks the file
	}
	if fs.samePIDs && alive(pid) {
		return ErrInvisible
	}
	return ErrNoProcess
}

// exited says that the process is a zombie, or has exited meanwhile.
func (fs FS) exited(pid int) bool {
	st, err := readStat(fs.Path(pid, "stat"))
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return !alive(pid)
	case err != nil: // it ended while stat was open
		return !errors.Is(err, iofs.ErrPermission)
	}
	return st.Exited
}

// alive asks the kernel itself, past /proc: EPERM is an answer about a process
// that exists.
func alive(pid int) bool {
	if pid <= 0 { // kill(2) would take it for a group
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
