package sockdiag

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An exact request is answered while it is sent (netlink_sendmsg calls
// sock_diag_rcv), in a microsecond. unix.Write and unix.Read would tell Go's
// scheduler that they may block (runtime.entersyscall), which in a program that
// is idle otherwise wakes the scheduler's monitor thread: with a hundred
// requests a second, spread evenly, that costs more than the requests. So they
// are made without telling it, where no lock can hold them up.

// answersAtOnce is true from Linux 6.9 on, taken to be the first without the
// locks: docs/kernels.md has an exact request beside a walk on each kernel (on
// 5.10 it took 31 times as long). With them a request waits while anybody's dump,
// this program's own too, fills a message (sock_diag_mutex,
// inet_diag_table_mutex), which can take a walk through the whole table. For so
// long one of Go's processors would stand still, and a garbage collection with it.
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
