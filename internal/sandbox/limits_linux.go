package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Limits are what a process may use from now on.
type Limits struct {
	// Memory is how much private memory it may add to what the Go runtime has at
	// its start (RLIMIT_DATA: address space that is only reserved does not count).
	Memory uint64
	CPU    uint64 // seconds, since its start (RLIMIT_CPU); SIGKILL ends it
	Files  uint64 // open at once (RLIMIT_NOFILE)
}

// Limit sets them, and that no file is written and no core is dumped. It dies with the process that
// started it. Its priority is that of whoever asks: on a host whose processors are all in
// use one that stands back has not read a server's limits within seconds, just when they are asked
// for, and CPU bounds what it takes. RLIMIT_NPROC would count the processes of the user that it
// becomes, and take threads away from the Go runtime: new processes are Confine's to forbid.
func Limit(l Limits) error {
	base, err := dataSize()
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	for _, limit := range []struct {
		what  string
		which int
		value uint64
	}{
		{"RLIMIT_DATA", unix.RLIMIT_DATA, base + l.Memory},
		{"RLIMIT_CPU", unix.RLIMIT_CPU, l.CPU},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, l.Files},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, 0},
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 0},
		{"RLIMIT_MSGQUEUE", unix.RLIMIT_MSGQUEUE, 0},
	} {
		if err := lower(limit.which, limit.value); err != nil {
			return fmt.Errorf("sandbox: %s: %w", limit.what, err)
		}
	}
	return nil
}

// lower never raises a limit that stands already.
func lower(which int, value uint64) error {
	var have unix.Rlimit
	if err := unix.Getrlimit(which, &have); err != nil {
		return err
	}
	value = min(value, have.Max)
	return unix.Setrlimit(which, &unix.Rlimit{Cur: value, Max: value})
}

// dataSize is what RLIMIT_DATA counts now (VmData of proc_pid_status(5)).
func dataSize() (uint64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	var kb []byte
	if _, after, ok := bytes.Cut(text, []byte("\nVmData:")); ok {
		kb, _, _ = bytes.Cut(bytes.TrimSpace(after), []byte(" "))
	}
	n, err := strconv.ParseUint(string(kb), 10, 64)
	return n << 10, err
}

// DieWithParent lets the kernel kill this process when the one that started it
// ends. A change of ids takes that back (prctl(2)), so it is said again after it.
func DieWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: prctl PR_SET_PDEATHSIG: %w", err)
	}
	return nil
}

// EndWithin lets the kernel kill this process after that time, also when it is stopped.
// Who started it may lose the right to do so (CAP_KILL) when this one takes another
// user's ids, and changing them clears what DieWithParent has set for a moment; a timer
// stays (timer_create(2)).
func EndWithin(d time.Duration) error {
	event := sigevent{signal: int32(unix.SIGKILL)}
	var timer int32
	if _, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&timer))); errno != 0 {
		return fmt.Errorf("sandbox: timer_create: %w", errno)
	}
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}
	if _, _, errno := unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(timer), 0, uintptr(unsafe.Pointer(&at)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("sandbox: timer_settime: %w", errno)
	}
	return nil
}

// sigevent is struct sigevent, 64 bytes; its sigev_notify stays 0, SIGEV_SIGNAL.
type sigevent struct {
	_      uint64
	signal int32
	_      [52]byte
}
