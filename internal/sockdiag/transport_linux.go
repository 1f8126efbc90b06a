package sockdiag

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// transport is a bare netlink socket: one write and one read a request. The
// netlink libraries receive through recvfrom and a poller, which allocates the
// sender's address and the messages each time. read reports neither the sender
// nor MSG_TRUNC, so the socket is connected to the kernel (the kernel then
// refuses what other processes send to it: netlink_getsockbyportid) and a full
// buffer counts as truncated.
type transport struct {
	fd       int           // non-blocking
	patience time.Duration // for a reply that is not there yet
	atOnce   bool          // see answersAtOnce
}

func openTransport() (transport, uint32, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return transport{fd: -1}, 0, err
	}
	portID, err := setUp(fd)
	if err != nil {
		return transport{fd: -1}, 0, errors.Join(err, unix.Close(fd))
	}
	return transport{fd: fd, patience: ReceiveTimeout, atOnce: answersAtOnce()}, portID, nil
}

func setUp(fd int) (portID uint32, err error) {
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	if err := unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	self, ok := sa.(*unix.SockaddrNetlink)
	if !ok {
		return 0, unix.EAFNOSUPPORT
	}
	return self.Pid, nil
}

func (t *transport) send(b []byte) error {
	if t.fd < 0 {
		return ErrClosed
	}
	for {
		_, err := unix.Write(t.fd, b)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// receive waits for a reply if it must; EAGAIN when none came.
func (t *transport) receive(b []byte) (int, error) {
	for {
		n, err := unix.Read(t.fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN) && t.wait():
		default:
			return max(n, 0), err
		}
	}
}

func (t *transport) wait() (ready bool) {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}}, int(t.patience.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

func (t *transport) close() error {
	if t.fd < 0 {
		return ErrClosed
	}
	fd := t.fd
	t.fd = -1
	return unix.Close(fd)
}
