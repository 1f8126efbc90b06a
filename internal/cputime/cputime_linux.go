package cputime

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of runs fn on one thread and returns the time that thread spent on a CPU, in
// user and in kernel mode (CLOCK_THREAD_CPUTIME_ID: to the nanosecond, where
// getrusage may be a whole tick late). Time that fn waits, for a CPU on a busy
// machine or for an answer, is not its cost to anybody.
func Of(fn func() error) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, ok1 := Thread()
	start := time.Now()
	err := fn()
	after, ok2 := Thread()
	if !ok1 || !ok2 {
		return time.Since(start), err
	}
	return after - before, err
}

// Process is the CPU time of the whole program so far, 0 where that is not known.
func Process() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Thread is the CPU time of the calling thread so far. Go's scheduler is not notified
// of the call, which never sleeps: being notified would wake its monitor thread.
func Thread() (time.Duration, bool) {
	var t unix.Timespec
	_, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), errno == 0
}
