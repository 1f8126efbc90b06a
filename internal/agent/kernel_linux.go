package agent

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// boundBuffers has the kernel hold so much of a connection: by itself it takes up to 4 MiB for what a
// client does not read (tcp_wmem), which counts as the agent's memory.
func boundBuffers(c net.Conn) {
	control(c, func(fd int) {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	})
}

// unread is how many bytes the kernel holds that the client's has not taken. Of a connection that the
// client has reset it holds none, but SIOCOUTQ stays as it was.
func unread(c net.Conn) (n int) {
	control(c, func(fd int) {
		out, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		if err != nil || out == 0 {
			return
		}
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil || info.State != unix.BPF_TCP_CLOSE {
			n = out
		}
	})
	return n
}

// control is for connections that are TCP's.
func control(c net.Conn, f func(fd int)) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	var raw syscall.RawConn
	raw, err := tcp.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
