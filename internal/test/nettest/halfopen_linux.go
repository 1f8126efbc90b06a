package nettest

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// HalfOpen sends n SYNs, at most 60,000, to an IPv4 listener at the far end of
// a Veth, from an address that never answers: each occupies a place in the SYN
// backlog until the listener has given up repeating its SYN-ACK. from chooses
// the address, so that calls with different ones do not repeat each other's.
func HalfOpen(tb testing.TB, dst netip.AddrPort, from uint8, n int) {
	tb.Helper()
	require.LessOrEqual(tb, n, 60000)
	require.NoError(tb, SYNs(dst, from, n))
}

// SYNs sends them, for whoever is no test.
func SYNs(dst netip.AddrPort, from uint8, n int) error {
	src := [4]byte{198, 18, 0, from}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	for i := range n {
		packet := synPacket(src, uint16(1024+i), dst)
		if err := unix.Sendto(fd, packet, 0, &unix.SockaddrInet4{Addr: dst.Addr().As4()}); err != nil {
			return err
		}
	}
	return nil
}

// synPacket is an IPv4 header (its length and checksum are the kernel's to
// fill) and a TCP header without options.
func synPacket(src [4]byte, sport uint16, dst netip.AddrPort) []byte {
	to := dst.Addr().As4()
	ip := []byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, unix.IPPROTO_TCP, 0, 0}
	ip = append(append(ip, src[:]...), to[:]...)

	tcp := make([]byte, 20)
	binary.BigEndian.PutUint16(tcp, sport)
	binary.BigEndian.PutUint16(tcp[2:], dst.Port())
	binary.BigEndian.PutUint32(tcp[4:], 1) // sequence number
	tcp[12] = 5 << 4                       // header length in words
	tcp[13] = 0x02                         // SYN
	binary.BigEndian.PutUint16(tcp[14:], 65535)

	pseudo := append(append([]byte{}, src[:]...), to[:]...)
	pseudo = append(pseudo, 0, unix.IPPROTO_TCP, 0, byte(len(tcp)))
	binary.BigEndian.PutUint16(tcp[16:], checksum(append(pseudo, tcp...)))
	return append(ip, tcp...)
}

// checksum is that of RFC 1071 over an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
