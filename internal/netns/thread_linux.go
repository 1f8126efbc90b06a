package netns

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// onThread runs fn on a goroutine that is locked to a thread other than the
// process's first, and waits for it. fn unlocks the thread if it left it as it
// was; otherwise the thread ends with the goroutine.
func onThread(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			fn()
			return
		}
		// Held here, the first thread cannot be the one that runs this again.
		onThread(fn)
		runtime.UnlockOSThread()
	}()
	<-done
}

// New makes a network namespace with nothing in it, its loopback down. It
// lives until the file is closed and nothing else uses it. It needs
// CAP_SYS_ADMIN.
//
// The thread goes back to where it was: with a thread that ends the kernel kills
// the processes that it started with PR_SET_PDEATHSIG, whoever started them.
func New() (ns *os.File, err error) {
	onThread(func() {
		var back bool
		if ns, back, err = makeNamespace(); back {
			runtime.UnlockOSThread()
		}
	})
	return ns, err
}

// makeNamespace moves the calling thread to a new namespace and back; without back it
// is not where it was.
func makeNamespace() (ns *os.File, back bool, err error) {
	home, err := os.Open(threadNS)
	if err != nil {
		return nil, true, fmt.Errorf("netns: %w", err)
	}
	defer func() { _ = home.Close() }()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, true, fmt.Errorf("netns: unshare: %w", err)
	}
	if ns, err = os.Open(threadNS); err != nil {
		err = fmt.Errorf("netns: %w", err)
	}
	return ns, enter(home) == nil, err
}
