package handshake

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ready waits for a socket, and lets it be in between. The runtime's own poller watches a
// socket as long as it is open, and a thread is woken for each event, also where no
// goroutine waits: it watches an epoll instance here, which has the socket's next event
// only when wait has asked for it (EPOLLONESHOT).
type ready struct {
	file *os.File // the epoll instance
	conn syscall.RawConn
	fd   int // the socket
}

func watch(fd int) (*ready, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("handshake: epoll: %w", err)
	}
	if err = unix.SetNonblock(epoll, true); err == nil { // os.NewFile hands it to the runtime's poller then
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT})
	}
	r := &ready{file: os.NewFile(uintptr(epoll), "packets"), fd: fd}
	if err == nil {
		r.conn, err = r.file.SyscallConn()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("handshake: wait for packets: %w", err), r.file.Close())
	}
	return r, nil
}

// wait returns when the socket is readable, os.ErrDeadlineExceeded after until, and
// os.ErrClosed once it is closed.
func (r *ready) wait() error {
	asked := false
	var failed error
	err := r.conn.Read(func(epoll uintptr) bool {
		if !asked {
			asked = true
			event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT}
			if failed = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_MOD, r.fd, &event); failed != nil {
				return true
			}
		}
		var events [1]unix.EpollEvent
		n, err := unix.EpollWait(int(epoll), events[:], 0)
		if err != nil && err != unix.EINTR {
			failed = err
		}
		return n > 0 || failed != nil
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("handshake: wait for packets: %w", err)
	}
	return nil
}

// until has wait end then; never if it is zero.
func (r *ready) until(at time.Time) { _ = r.file.SetReadDeadline(at) }

// close ends a wait.
func (r *ready) close() { _ = r.file.Close() }
