package main

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Constants of linux/sock_diag.h and linux/inet_diag.h.
const (
	tcpDiagGetSock   = 18
	sockDiagByFamily = 20
	extInfo          = 1 << 1 // INET_DIAG_INFO
	extMemory        = 1 << 6 // INET_DIAG_SKMEMINFO
	stateListen      = 1 << 10
	// statesConnected: all but LISTEN, CLOSE and SYN_SENT, what a scan asks for.
	statesConnected = 1<<1 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<8 | 1<<9 | 1<<11
	headerLen       = 16
)

// bare is a netlink socket and nothing else: what it takes is the limit that
// the kernel sets, since the replies are thrown away undecoded.
type bare struct {
	fd     int
	buffer []byte
}

func newBare() (*bare, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &bare{fd: fd, buffer: make([]byte, 64<<10)}, nil
}

func (b *bare) close() { _ = unix.Close(b.fd) }

// once sends a request that is no dump and reads its one reply.
func (b *bare) once(request []byte) error {
	if _, err := unix.Write(b.fd, request); err != nil {
		return err
	}
	_, err := unix.Read(b.fd, b.buffer)
	return err
}

// dump sends a request and reads until NLMSG_DONE, which stands at the end of
// the last datagram. Nothing else is read.
func (b *bare) dump(request []byte) error {
	const doneLen = headerLen + 4
	if _, err := unix.Write(b.fd, request); err != nil {
		return err
	}
	for {
		n, err := unix.Read(b.fd, b.buffer)
		if err != nil {
			return err
		}
		if last := n - doneLen; last >= 0 && b.buffer[last] == doneLen && b.buffer[last+4] == unix.NLMSG_DONE {
			return nil
		}
	}
}

// count is dump, counting the messages of sockets.
func (b *bare) count(request []byte) (sockets int, err error) {
	if _, err := unix.Write(b.fd, request); err != nil {
		return 0, err
	}
	for {
		n, err := unix.Read(b.fd, b.buffer)
		if err != nil {
			return 0, err
		}
		for rest := b.buffer[:n]; len(rest) >= headerLen; {
			length := int(binary.NativeEndian.Uint32(rest))
			switch binary.NativeEndian.Uint16(rest[4:]) {
			case unix.NLMSG_DONE:
				return sockets, nil
			case unix.NLMSG_ERROR:
				return 0, fmt.Errorf("sock_diag answered with errno %d", -int32(binary.NativeEndian.Uint32(rest[headerLen:])))
			default:
				sockets++
			}
			rest = rest[(length+3)&^3:]
		}
	}
}

// dumpRequest is struct inet_diag_req: both families in one walk. sport 0 is
// every port.
func dumpRequest(states uint32, extensions uint8, sport uint16) []byte {
	b := request(tcpDiagGetSock, unix.NLM_F_REQUEST|unix.NLM_F_DUMP, 60)
	body := b[headerLen:]
	body[3] = extensions
	binary.BigEndian.PutUint16(body[4:], sport)
	copy(body[44:], noCookie())
	binary.NativeEndian.PutUint32(body[52:], states)
	return b
}

// exactRequest is struct inet_diag_req_v2 for the listener [::]:port.
func exactRequest(port uint16) []byte {
	b := request(sockDiagByFamily, unix.NLM_F_REQUEST, 56)
	body := b[headerLen:]
	body[0], body[1], body[2] = unix.AF_INET6, unix.IPPROTO_TCP, extMemory
	binary.NativeEndian.PutUint32(body[4:], stateListen)
	binary.BigEndian.PutUint16(body[8:], port)
	copy(body[48:], noCookie())
	return b
}

func request(typ, flags uint16, length int) []byte {
	b := make([]byte, headerLen+length)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], typ)
	binary.NativeEndian.PutUint16(b[6:], flags)
	return b
}

// noCookie is INET_DIAG_NOCOOKIE: any socket.
func noCookie() []byte { return []byte{255, 255, 255, 255, 255, 255, 255, 255} }
