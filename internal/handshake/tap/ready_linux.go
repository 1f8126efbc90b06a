package tap

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ready waits for a socket, or lets it be for some time. The runtime's own poller watches a
// socket as long as it is open, and a thread is woken for each event, also where no
// goroutine waits: it watches an epoll instance here, which has the socket's next event
// only once that is asked for (EPOLLONESHOT). The time is a timerfd's: one of the runtime's
// wakes three threads (see package metronome).
type ready struct {
	socket int // not ready's to close
	epoll  *os.File
	events syscall.RawConn // of epoll
	timer  *os.File
	time   syscall.RawConn // of timer

	// Of the latest wait; there is one at a time:
	all    bool // the socket ends it, too
	timed  bool // the timer has run down
	failed error
	polled func(epoll uintptr) bool // poll, made once, to allocate nothing
}

func watch(socket int) (*ready, error) {
	r := &ready{socket: socket}
	r.polled = r.poll
	if err := r.open(); err != nil {
		r.close()
		return nil, fmt.Errorf("tap: wait for packets: %w", err)
	}
	return r, nil
}

func (r *ready) open() error {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	if err := unix.SetNonblock(epoll, true); err != nil { // os.NewFile hands it to the runtime's poller then
		return errors.Join(err, unix.Close(epoll))
	}
	r.epoll = os.NewFile(uintptr(epoll), "packets")
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("timerfd_create: %w", err)
	}
	r.timer = os.NewFile(uintptr(timer), "timer")
	for fd, events := range map[int]uint32{r.socket: unix.EPOLLONESHOT, timer: unix.EPOLLIN} {
		event := unix.EpollEvent{Events: events, Fd: int32(fd)}
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
			return fmt.Errorf("epoll_ctl: %w", err)
		}
	}
	// NewFile does not say so when the poller cannot have the file (fs.epoll.max_user_watches).
	if err := r.epoll.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if r.events, err = r.epoll.SyscallConn(); err != nil {
		return err
	}
	r.time, err = r.timer.SyscallConn()
	return err
}

// wait returns when the socket is readable or the timer has run down. timed: it has.
func (r *ready) wait() (timed bool, err error) {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(r.socket)}
	controlled := r.events.Control(func(epoll uintptr) { err = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_MOD, r.socket, &event) })
	if err := errors.Join(controlled, err); err != nil {
		return false, fmt.Errorf("tap: ask for packets: %w", err)
	}
	err = r.waitFor(true)
	return r.timed, err
}

// rest returns after some time. It uses the timer.
func (r *ready) rest(d time.Duration) error {
	if err := r.setTimer(d); err != nil {
		return err
	}
	return r.waitFor(false)
}

func (r *ready) waitFor(all bool) error {
	r.all, r.timed, r.failed = all, false, nil
	if err := errors.Join(r.events.Read(r.polled), r.failed); err != nil {
		return fmt.Errorf("tap: wait for packets: %w", err)
	}
	return nil
}

// poll is a call that the scheduler is not told of, as it never sleeps: told of it, it
// would wake its monitor thread.
func (r *ready) poll(epoll uintptr) (done bool) {
	var events [2]unix.EpollEvent
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, epoll, uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if err != 0 {
		r.failed = fmt.Errorf("epoll_pwait: %w", err)
		return true
	}
	for _, event := range events[:n] {
		timed := event.Fd != int32(r.socket)
		r.timed = r.timed || timed
		done = done || timed || r.all
	}
	return done
}

// setTimer has the timer run down after some time, never if that is 0.
func (r *ready) setTimer(d time.Duration) error {
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}
	var failed syscall.Errno
	controlled := r.time.Control(func(timer uintptr) {
		_, _, failed = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, timer, 0, uintptr(unsafe.Pointer(&value)), 0, 0, 0)
	})
	if controlled != nil {
		return fmt.Errorf("tap: timer: %w", controlled)
	}
	if failed != 0 {
		return fmt.Errorf("tap: timer: %w", failed)
	}
	return nil
}

// close ends a wait. It may be called twice, from any goroutine.
func (r *ready) close() {
	for _, f := range []*os.File{r.epoll, r.timer} {
		if f != nil {
			_ = f.Close()
		}
	}
}
