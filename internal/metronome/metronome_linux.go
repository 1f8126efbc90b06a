package metronome

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Metronome is a timer of the kernel's (timerfd_create(2), CLOCK_MONOTONIC) that
// Go's poller waits for, which wakes one thread a tick. time.Ticker wakes three:
// the poller sleeps for whole milliseconds, so first too early and again for the
// rest, and the scheduler's monitor thread sleeps until the same tick. On a
// machine whose processors are busy each of them takes one from somebody.
//
// Ticks that nobody waited for are one: late ones do not bunch up.
type Metronome struct {
	file *os.File
	conn syscall.RawConn
	take func(fd uintptr) bool // made once, to allocate nothing a tick
	read [8]byte               // number of expirations, which nobody asks for
}

// New ticks for the first time after one interval.
func New(interval time.Duration) (*Metronome, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	m := &Metronome{file: os.NewFile(uintptr(fd), "timerfd")}
	m.take = m.taken
	if m.conn, err = m.file.SyscallConn(); err == nil {
		err = m.Set(interval)
	}
	if err != nil {
		m.Stop()
		return nil, err
	}
	return m, nil
}

// Set changes the interval, at once, from any goroutine.
func (m *Metronome) Set(interval time.Duration) (err error) {
	every := unix.NsecToTimespec(interval.Nanoseconds())
	controlled := m.conn.Control(func(fd uintptr) {
		if e := unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); e != nil {
			err = fmt.Errorf("timerfd_settime %v: %w", interval, e)
		}
	})
	if err == nil {
		err = controlled
	}
	return err
}

// Wait returns at the next tick; false once stopped.
func (m *Metronome) Wait() bool { return m.conn.Read(m.take) == nil }

// taken reads the timer, which starts it again (timerfd_read), by a call that
// Go's scheduler is not told of: it never sleeps, and being told would wake the
// monitor thread (runtime.entersyscall).
func (m *Metronome) taken(fd uintptr) bool {
	_, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&m.read[0])), uintptr(len(m.read)))
	return errno != unix.EAGAIN
}

// Stop ends Wait, from any goroutine.
func (m *Metronome) Stop() { _ = m.file.Close() }
