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
func New() (*os.File, error) {
	var ns *os.File
	var err error
	onThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			err = fmt.Errorf("netns: unshare: %w", err)
			return
		}
		ns, err = os.Open(threadNS) // still locked: the thread ends here
	})
	return ns, err
}
