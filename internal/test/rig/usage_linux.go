package rig

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime is what a process has used so far, from its own clock
// (CPUCLOCK_SCHED of clock_gettime): exact to the nanosecond, where
// /proc/PID/stat counts hundredths of a second.
func CPUTime(pid int) (time.Duration, error) {
	const sched = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0, fmt.Errorf("processor time of %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// Resident is VmRSS, and the highest it was, in bytes.
func Resident(pid int) (now, highest int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	field := func(name string) (kilobytes int64) {
		_, rest, _ := strings.Cut(string(b), name+":")
		_, _ = fmt.Sscan(rest, &kilobytes)
		return kilobytes << 10
	}
	now, highest = field("VmRSS"), field("VmHWM")
	if now == 0 {
		return 0, 0, errors.New("status has no VmRSS")
	}
	return now, highest, nil
}

// Shared is the part of a process's resident memory that is files: the program
// itself, which the kernel keeps once for all and drops when it needs room.
func Shared(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), "RssFile:")
	var kilobytes int64
	_, err = fmt.Sscan(rest, &kilobytes)
	return kilobytes << 10, err
}
