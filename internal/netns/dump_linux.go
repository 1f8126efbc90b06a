package netns

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errMany ends a dump of more than is read: whoever administers a namespace, as each user may one of his own, gives it as many
// addresses, routes and interfaces as he likes.
var errMany = errors.New("netns: there are too many")

// errInterrupted: what is dumped has changed meanwhile, and something may be missing.
var errInterrupted = errors.New("netns: the dump was cut short")

// dumpTries bounds how often a dump that was cut short (NLM_F_DUMP_INTR) is made again.
const dumpTries = 3

// dump asks rtnetlink for all of a kind in the network namespace of the calling thread, and calls each with what it answers,
// until that fails: the kernel makes no more of the dump then. strict: filtered by the kernel (NETLINK_GET_STRICT_CHK), which
// before 4.20 and 5.0 answers with nothing.
func dump(kind uint16, body []byte, strict bool, each func(*syscall.NetlinkMessage) error) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if strict && unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1) != nil {
		return nil
	}
	ne := binary.NativeEndian
	b := ne.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	b = ne.AppendUint16(b, kind)
	b = ne.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b = append(b, make([]byte, 8)...) // sequence number, port
	if err := unix.Sendto(fd, append(b, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("send", err)
	}
	interrupted := false
	for b := make([]byte, 1<<15); ; {
		n, _, err := unix.Recvfrom(fd, b, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return os.NewSyscallError("receive", err)
		}
		messages, err := syscall.ParseNetlinkMessage(b[:n])
		if err != nil {
			return err
		}
		for i := range messages {
			interrupted = interrupted || messages[i].Header.Flags&unix.NLM_F_DUMP_INTR != 0
			switch messages[i].Header.Type {
			case unix.NLMSG_DONE, unix.NLMSG_ERROR: // without IPv6 there are no such tables
				if interrupted {
					return errInterrupted
				}
				return nil
			}
			if err := each(&messages[i]); err != nil {
				return err
			}
		}
	}
}
