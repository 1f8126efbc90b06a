package threads

import (
	"bytes"
	"errors"
	"runtime"
	"strconv"
	"syscall"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// Handle reads one thread through files that are kept open: they belong to
// this thread, and answer ErrNoProcess when it has ended, whichever thread has its id then. It
// is for one goroutine at a time.
type Handle struct {
	fs                hostproc.FS
	pid               int
	status, schedstat *procfile.Handle
	// call is nil where it may not be read (PTRACE_MODE_ATTACH, which Yama's
	// ptrace_scope withholds even from the same user); wchan stands in for it
	// where that may be (PTRACE_MODE_READ).
	call, wchan *procfile.Handle
	callErr     error
	numbers     callNumbers
}

// OpenHandle opens the files of a thread.
func OpenHandle(fs hostproc.FS, pid, tid int) (*Handle, error) {
	t := &Handle{fs: fs, pid: pid}
	if err := t.open(strconv.Itoa(tid)); err != nil {
		t.Close()
		return nil, fs.Wrap(pid, "thread "+strconv.Itoa(tid), err)
	}
	return t, nil
}

func (t *Handle) open(tid string) (err error) {
	path := func(name string) string { return t.fs.Path(t.pid, "task", tid, name) }
	if t.status, err = procfile.OpenHandle(path("status"), 2<<10); err != nil {
		return err
	}
	if t.schedstat, err = procfile.OpenHandle(path("schedstat"), 128); err != nil {
		return err
	}
	var known bool
	if t.numbers, known = callsOf(runtime.GOARCH); !known {
		t.callErr = hostproc.ErrNotSupported
		return nil
	}
	t.call, t.callErr = openReadable(path("syscall"))
	if t.callErr != nil {
		t.wchan, _ = openReadable(path("wchan"))
	}
	return nil
}

// openReadable opens a file whose permission is asked for at each read.
func openReadable(path string) (*procfile.Handle, error) {
	f, err := procfile.OpenHandle(path, 256)
	if err != nil {
		return nil, err
	}
	if _, err := f.Read(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// CallErr says why the system calls cannot be read, nil where they can.
func (t *Handle) CallErr() error { return t.fs.Wrap(t.pid, "system call", t.callErr) }

// Read reads the thread: the counters first, then the system call. So when the
// counters are the same at the next reading, the call of this one lasted until
// then.
func (t *Handle) Read(out *Thread) error {
	*out = Thread{}
	data, err := t.schedstat.Read()
	if err == nil {
		err = out.setSchedstat(data)
	}
	if err == nil {
		if data, err = t.status.Read(); err == nil {
			err = out.setStatus(data)
		}
	}
	if err == nil {
		err = t.readCall(out)
	}
	if errors.Is(err, syscall.ESRCH) {
		return hostproc.ErrNoProcess
	}
	return err
}

func (t *Handle) readCall(out *Thread) error {
	switch {
	case t.call != nil:
		data, err := t.call.Read()
		if err != nil {
			return err
		}
		out.Call, err = parseCall(data, t.numbers)
		return err
	case t.wchan != nil:
		data, err := t.wchan.Read()
		if err != nil {
			return err
		}
		// inet_csk_accept, with inet_csk_wait_for_connect inlined or not.
		out.Accepting = bytes.HasPrefix(data, []byte("inet_csk_accept")) || bytes.HasPrefix(data, []byte("inet_csk_wait"))
	}
	return nil
}

// Close closes the files.
func (t *Handle) Close() {
	for _, f := range []*procfile.Handle{t.status, t.schedstat, t.call, t.wchan} {
		if f != nil {
			_ = f.Close()
		}
	}
}
