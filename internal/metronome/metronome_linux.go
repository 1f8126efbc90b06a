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
// Go's poller waits for, which is one wake-up a tick. A time.Ticker takes three:
// the poller sleeps for whole milliseconds, so wakes too early and again for the
// rest, and the scheduler's monitor thread sleeps until the same tick. On a
// machine whose processors are busy each wake-up takes one from somebody.
//
// Ticks that nobody waited for are one: late ones do not bunch up.
type Metronome struct {
	file *os.File
	conn syscall.RawConn

	poll   func(fd uintptr) (done bool) // readTimer, made once, to allocate nothing a tick
	ticks  [8]byte                      // what the timer returns: expirations since it was last read
	failed syscall.Errno                // of the latest reading
}

// New ticks for the first time after one interval, which must be positive.
func New(interval time.Duration) (*Metronome, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	m := &Metronome{file: os.NewFile(uintptr(fd), "timerfd")}
	m.poll = m.readTimer
	if err := m.start(interval); err != nil {
		m.Stop()
		return nil, err
	}
	return m, nil
}

func (m *Metronome) start(interval time.Duration) (err error) {
	// NewFile does not report when the poller cannot have the file
	// (fs.epoll.max_user_watches); then it has no deadlines either.
	if err := m.file.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("timerfd: %w", err)
	}
	if m.conn, err = m.file.SyscallConn(); err != nil {
		return fmt.Errorf("timerfd: %w", err)
	}
	return m.Set(interval)
}

// Set changes the interval, at once, from any goroutine.
func (m *Metronome) Set(interval time.Duration) (err error) {
	if interval <= 0 {
		return fmt.Errorf("interval %v: must be positive", interval)
	}
	every := unix.NsecToTimespec(interval.Nanoseconds())
	controlled := m.conn.Control(func(fd uintptr) {
		err = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Interval: every, Value: every}, nil)
	})
	if err == nil {
		err = controlled
	}
	if err != nil {
		return fmt.Errorf("timerfd_settime %v: %w", interval, err)
	}
	return nil
}

// Wait returns at the next tick, and with an error once stopped.
func (m *Metronome) Wait() error {
	if err := m.conn.Read(m.poll); err != nil {
		return err
	}
	if m.failed != 0 {
		return fmt.Errorf("timerfd: %w", m.failed)
	}
	return nil
}

// readTimer starts the timer again, as any reading does (timerfd_read), by a
// call that Go's scheduler is not notified of: it never sleeps, and being notified would
// wake the monitor thread (runtime.entersyscall). Not done: it has not expired.
func (m *Metronome) readTimer(fd uintptr) (done bool) {
	_, _, m.failed = unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&m.ticks[0])), uintptr(len(m.ticks)))
	return m.failed != unix.EAGAIN && m.failed != unix.EINTR
}

// Stop ends Wait, from any goroutine. It may be called twice.
func (m *Metronome) Stop() { _ = m.file.Close() }
