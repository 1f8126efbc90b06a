package draws

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dial connects. Whose patience ends asks its kernel, at that moment, whether it is connected:
// a timer that comes late on a busy machine makes no client that gave up.
func (v *visitor) dial() (net.Conn, ending) {
	to := netip.MustParseAddrPort(v.address)
	fd, err := v.far.socket()
	if err != nil {
		return nil, local
	}
	file := os.NewFile(uintptr(fd), "client")
	defer file.Close()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil && err != unix.EINPROGRESS {
		return nil, endingOf(err, gaveUp)
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, local
	}
	state, failed := uint8(0), 0
	look := func(fd uintptr) bool {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return true
		}
		state = info.State
		failed, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		return state != unix.BPF_TCP_SYN_SENT || failed != 0
	}
	_ = file.SetWriteDeadline(time.Now().Add(v.d.connect))
	timeout := raw.Write(look)
	if timeout != nil {
		_ = raw.Control(func(fd uintptr) { look(fd) })
	}
	switch {
	case failed == int(unix.ETIMEDOUT), failed == 0 && state == unix.BPF_TCP_SYN_SENT:
		return nil, gaveUp
	case failed != 0:
		return nil, endingOf(syscall.Errno(failed), gaveUp)
	case timeout != nil:
		return nil, hasty
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, local
	}
	return conn, answered
}
