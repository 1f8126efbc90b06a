package sockdiag

import (
	"errors"
	"fmt"
	"syscall"
)

// What an *Error may wrap besides the kernel's errno.
var (
	// ErrNotSupported: another system, or a kernel without sock_diag.
	ErrNotSupported = errors.New("not supported by this kernel")
	// ErrNoModule is ErrNotSupported where a module is missing that the kernel
	// could not load on demand: the program of kernel.modprobe is not there, or
	// modules may not be loaded any more (kernel.modules_disabled). tcp_diag
	// brings inet_diag along.
	ErrNoModule = fmt.Errorf("%w: its module tcp_diag is not loaded and cannot be loaded on demand; run `modprobe tcp_diag` on the host as root", ErrNotSupported)
	// ErrNotFound: no such listener, or another one answered in its place.
	ErrNotFound = errors.New("no such listener")
	// ErrInterrupted: the kernel says that the walk's result is not consistent
	// (NLM_F_DUMP_INTR). The callback has seen a part.
	ErrInterrupted = errors.New("walk interrupted by changes of the socket table")
	// ErrTruncated: a message did not fit the receive buffer.
	ErrTruncated = errors.New("reply truncated")
	// ErrMalformed: lengths within a message contradict each other.
	ErrMalformed = errors.New("reply malformed")
	// ErrTimeout: the kernel did not answer within ReceiveTimeout.
	ErrTimeout = errors.New("no reply from the kernel")
	// ErrNoPorts: a scan without ports would be one of everything.
	ErrNoPorts = errors.New("no ports to scan for")
	// ErrClosed: the Conn was used after Close.
	ErrClosed = errors.New("connection closed")
)

// Error is a failed request.
type Error struct {
	Op    string        // dial, lookup, dump, scan
	Errno syscall.Errno // as the kernel gave it, 0 if it gave none
	Err   error         // one of the sentinels, nil if there is only Errno
}

// Error reads "sockdiag: scan: operation not permitted".
func (e *Error) Error() string {
	if e.Err != nil {
		return "sockdiag: " + e.Op + ": " + e.Err.Error()
	}
	return "sockdiag: " + e.Op + ": " + e.Errno.Error()
}

// Unwrap lets errors.Is find the sentinel and the errno, and with the errno
// fs.ErrPermission and the like.
func (e *Error) Unwrap() []error {
	var all []error
	if e.Err != nil {
		all = append(all, e.Err)
	}
	if e.Errno != 0 {
		all = append(all, e.Errno)
	}
	return all
}

// wrap makes an *Error of an errno or a sentinel.
func wrap(op string, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return &Error{Op: op, Err: err}
	}
	return &Error{Op: op, Errno: errno, Err: sentinel(errno)}
}

func sentinel(errno syscall.Errno) error {
	switch errno {
	case syscall.EAGAIN: // nothing came: transport.receive
		return ErrTimeout
	case syscall.EOPNOTSUPP: // no inet_diag: sock_diag_rcv_msg, inet_rcv_compat
		return ErrNoModule
	case syscall.EPROTONOSUPPORT, syscall.EAFNOSUPPORT:
		return ErrNotSupported
	}
	return nil
}
