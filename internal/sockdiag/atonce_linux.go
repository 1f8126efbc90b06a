package sockdiag

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

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
