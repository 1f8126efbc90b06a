package sockdiag

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

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

// An exact request is answered while it is sent (netlink_sendmsg calls
// sock_diag_rcv), in a microsecond. unix.Write and unix.Read would notify Go's
// scheduler that they may block (runtime.entersyscall), which in a program that
// is idle otherwise wakes the scheduler's monitor thread: with a hundred
// requests a second, spread evenly, that costs more than the requests. So they
// are made without telling it, where no lock can hold them up.

func (t *transport) sendAtOnce(b []byte) error {
	if t.fd < 0 {
		return ErrClosed
	}
	if !t.atOnce {
		return t.send(b)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(t.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	switch errno {
	case 0:
		return nil
	case unix.EINTR:
		return t.send(b)
	}
	return errno
}

// receiveAtOnce takes a reply that is there, and else waits for it as receive does.
func (t *transport) receiveAtOnce(b []byte) (int, error) {
	if !t.atOnce {
		return t.receive(b)
	}
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(t.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	switch errno {
	case 0:
		return int(n), nil
	case unix.EAGAIN, unix.EINTR:
		return t.receive(b)
	}
	return 0, errno
}

// answersAtOnce is true from Linux 6.9 on: docs/results/kernels.md has an exact request during a
// walk on each kernel (on 5.10 it took 28 times as long). With its locks a request waits
// while anybody's dump, this program's own too, fills a message (sock_diag_mutex,
// inet_diag_table_mutex), which can take a walk through the whole table. For so
// long one of Go's processors would stand still, and a garbage collection with it.
// On an older kernel whose vendor has removed the locks it costs some processor time.
func answersAtOnce() bool {
	var u unix.Utsname
	return unix.Uname(&u) == nil && atLeast(unix.ByteSliceToString(u.Release[:]), 6, 9)
}

// atLeast compares a kernel's release, such as 6.1.0-18-amd64.
func atLeast(release string, major, minor int) bool {
	var has [2]int
	if _, err := fmt.Sscanf(release, "%d.%d", &has[0], &has[1]); err != nil {
		return false
	}
	return has[0] > major || has[0] == major && has[1] >= minor
}
