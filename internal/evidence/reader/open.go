package reader

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/openfiles"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
)

// open opens what is not open yet.
func (r *Reader) open(now time.Time) {
	r.tried = now
	if r.acceptor == 0 {
		r.missing[evidence.SubjectAcceptor] = r.openThread()
	}
	if r.files == nil {
		files, err := openfiles.OpenHandle(r.proc, r.of.PID)
		if err == nil {
			r.files = files
		}
		r.missing[evidence.SubjectFiles] = why(err)
	}
	if r.jvm == nil {
		jvm, err := r.openJVM()
		if err == nil {
			r.jvm = jvm
		}
		r.missing[evidence.SubjectSafepoints] = why(err)
	}
	if r.freezer == nil {
		if freezer, err := cgroup.OpenFreezer(r.proc, r.of.PID); err == nil {
			r.freezer = freezer
		}
	}
	if r.throttle == nil {
		throttle, err := cgroup.OpenThrottle(r.proc, r.of.PID)
		if err == nil {
			r.throttle = throttle
		}
		if errors.Is(err, hostproc.ErrNotSupported) { // no limit
			err = nil
		}
		r.missing[evidence.SubjectThrottling] = why(err)
	}
}

// findAcceptor finds the acceptor. Where the threads' names are cut off before the port, and whether the process listens on
// another is not known, its descriptors show it.
func (r *Reader) findAcceptor() (tid int, err error) {
	tid, err = threads.FindAcceptor(r.proc, r.of.PID, r.of.Port, r.of.Inode, r.of.Others)
	if !errors.Is(err, threads.ErrUnclear) || r.of.Others != nil || !r.listensAlone() {
		return tid, err
	}
	r.of.Others = []uint16{}
	return threads.FindAcceptor(r.proc, r.of.PID, r.of.Port, r.of.Inode, r.of.Others)
}

// mostDescriptors is how many descriptors are looked at for that, once.
const mostDescriptors = 4096

// listensAlone means that none of the sockets whose process is not known is this process's.
func (r *Reader) listensAlone() bool {
	if r.searched || len(r.of.Unowned) == 0 {
		return false
	}
	r.searched = true
	alone := true
	next, err := r.proc.SocketFiles(r.of.PID, 0, mostDescriptors, func(_ int, inode uint32) bool {
		alone = !slices.Contains(r.of.Unowned, inode)
		return alone
	})
	return err == nil && next == 0 && alone
}

// openThread opens the acceptor, or the main thread, which reports whether the
// process is stopped. It answers why the acceptor is missing.
func (r *Reader) openThread() string {
	tid, findErr := r.findAcceptor()
	if findErr == nil {
		thread, err := threads.OpenHandle(r.proc, r.of.PID, tid)
		if err == nil {
			r.closeThread()
			r.thread, r.acceptor = thread, tid
			return why(thread.CallErr())
		}
		findErr = err
	}
	if r.thread == nil {
		if thread, err := threads.OpenHandle(r.proc, r.of.PID, r.of.PID); err == nil {
			r.thread = thread
		} else {
			r.missing[evidence.SubjectProcess] = why(err)
		}
	}
	return why(findErr)
}

// why puts an error in words that are the same for every process.
func why(err error) string {
	switch {
	case err == nil, errors.Is(err, threads.ErrEnded): // that is what was read
		return ""
	case errors.Is(err, hostproc.ErrNoProcess):
		return "the process has ended"
	case errors.Is(err, hostproc.ErrInvisible):
		return hostproc.ErrInvisible.Error()
	case errors.Is(err, hsperf.ErrNoPerfData):
		return "the process publishes none: it is no HotSpot JVM, or runs with -XX:-UsePerfData or -XX:+PerfDisableSharedMem"
	case errors.Is(err, threads.ErrNoAcceptor):
		return threads.ErrNoAcceptor.Error()
	case errors.Is(err, threads.ErrUnclear):
		return threads.ErrUnclear.Error()
	case errors.Is(err, hostproc.ErrNotSupported):
		return hostproc.ErrNotSupported.Error()
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	return err.Error()
}

func (r *Reader) closeThread() {
	if r.thread != nil {
		r.thread.Close()
	}
	r.thread, r.acceptor = nil, 0
}
