package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// threadNS is the calling thread's own namespace. /proc/self would be the main
// thread's.
const threadNS = "/proc/thread-self/ns/net"

// Current returns the namespace of the calling goroutine's thread.
func Current() (ID, error) { return statID(threadNS) }

// OfPID returns the namespace of a process. It needs the right to ptrace the
// process (same uid and gid, or CAP_SYS_PTRACE); without it the error is
// fs.ErrPermission, and fs.ErrNotExist for a process that has exited.
func OfPID(procRoot string, pid int) (ID, error) { return statID(Path(procRoot, pid)) }

func statID(path string) (ID, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("netns: %w", err)
	}
	return idOf(fi)
}

func idOf(fi os.FileInfo) (ID, error) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("netns: %q has no inode number", fi.Name())
	}
	return ID(st.Ino), nil
}

// Namespace is a namespace that is kept: it can be entered, and does not end,
// when the process by which it was found has exited.
type Namespace struct {
	file *os.File
	id   ID
}

// Open opens the namespace at path, such as /proc/42/ns/net or /run/netns/blue.
// Errors are those of OfPID.
func Open(path string) (*Namespace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("netns: %w", err)
	}
	fi, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("netns: %w", errors.Join(err, file.Close()))
	}
	id, err := idOf(fi)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Namespace{file, id}, nil
}

// ID is the namespace's number, which no other has while it is open.
func (n *Namespace) ID() ID { return n.id }

// Close lets the namespace go.
func (n *Namespace) Close() error { return n.file.Close() }

// Do is Namespace.Do for a path.
func Do(path string, fn func() error) error {
	n, err := Open(path)
	if err != nil {
		return err
	}
	defer n.Close()
	return n.Do(fn)
}

// Do runs fn on a thread that has entered the namespace, and returns fn's error.
// Entering another namespace needs CAP_SYS_ADMIN; the caller's own runs fn
// without.
//
// What fn opens (sockets) stays in the namespace and may be used from
// anywhere; goroutines that fn starts run outside. A panic in fn reaches the
// caller, and so does runtime.Goexit (testing's FailNow).
func (n *Namespace) Do(fn func() error) error {
	here, err := Current()
	if err != nil {
		return err
	}
	if here == n.id {
		return fn()
	}
	v := visit{target: n.file, fn: fn}
	onThread(v.run)
	return v.outcome()
}

// visit is one run in a foreign namespace, on a goroutine of its own: should
// the way back fail, that goroutine ends while still locked and the runtime
// destroys its thread, which no other goroutine can then be put on.
type visit struct {
	target   *os.File
	original *os.File // of the thread; its caller's may be another, in a visit within a visit
	fn       func() error

	err      error
	panicked any
	returned bool // fn returned: neither a panic nor Goexit
}

// run finds out where the thread is at home.
func (v *visit) run() {
	home, err := os.Open(threadNS)
	if err != nil {
		v.err, v.returned = fmt.Errorf("netns: %w", err), true
		runtime.UnlockOSThread()
		return
	}
	defer home.Close()
	v.original = home
	v.cross()
}

// cross goes there and back.
func (v *visit) cross() {
	if err := enter(v.target); err != nil {
		v.err, v.returned = err, true
		runtime.UnlockOSThread()
		return
	}
	defer v.leave()
	v.err = v.fn()
	v.returned = true
}

// leave runs deferred, so that recover sees fn's panic.
func (v *visit) leave() {
	if !v.returned {
		v.panicked = recover()
	}
	if err := enter(v.original); err != nil {
		v.err = errors.Join(v.err, fmt.Errorf("%w; the thread is given up", err))
		return
	}
	runtime.UnlockOSThread()
}

func (v *visit) outcome() error {
	if v.panicked != nil {
		panic(v.panicked)
	}
	if !v.returned {
		runtime.Goexit()
	}
	return v.err
}

// enter moves the calling thread (setns(2)); a file that is no network
// namespace is EINVAL.
func enter(ns *os.File) error {
	err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("netns: enter %q: %w (it takes CAP_SYS_ADMIN)", ns.Name(), err)
	}
	if err != nil {
		return fmt.Errorf("netns: enter %q: %w", ns.Name(), err)
	}
	return nil
}
