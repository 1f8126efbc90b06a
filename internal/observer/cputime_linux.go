package observer

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime runs fn on one thread and returns the time that thread spent on a
// CPU, in user and in kernel mode (CLOCK_THREAD_CPUTIME_ID: to the nanosecond,
// where getrusage may be a whole tick late). Time that fn waits, for a CPU on a
// busy machine or for an answer, is not its cost to anybody.
func cpuTime(fn func() error) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, ok1 := threadTime()
	start := time.Now()
	err := fn()
	after, ok2 := threadTime()
	if !ok1 || !ok2 {
		return time.Since(start), err
	}
	return after - before, err
}

func threadTime() (time.Duration, bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
