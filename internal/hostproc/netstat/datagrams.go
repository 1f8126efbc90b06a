package netstat

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// mostSockets bounds how many lines of a table of datagram or Unix sockets are read: whoever is in
// the namespace makes them.
const mostSockets = 16384

// Datagrams calls fn with the inode of each UDP socket in the network namespace of a process and
// with the peer that it is connected to, which is not valid where it is not. Any user may read
// it of any process. It reads net/udp and net/udp6, 16,384 sockets of each at most.
func Datagrams(fs hostproc.FS, pid int, fn func(inode uint32, peer netip.AddrPort)) error {
	for _, t := range []socketTable{{"udp", 9, true}, {"udp6", 9, false}} {
		n := 0
		err := t.each(fs, pid, func(inode uint32, line []byte) bool {
			fn(inode, hexPeer(string(nthField(line, 2))))
			n++
			return n < mostSockets
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// UnixSockets calls fn with the inode of each socket of the Unix domain there, of 16,384 at most.
func UnixSockets(fs hostproc.FS, pid int, fn func(inode uint32)) error {
	n := 0
	return (&socketTable{"unix", 6, true}).each(fs, pid, func(inode uint32, _ []byte) bool {
		fn(inode)
		n++
		return n < mostSockets
	})
}

// hexPeer reads "0900007F:0035", whose address is in words of 32 bits in the order of the
// machine (udp4_format_sock, __ip6_dgram_sock_seq_show). It is not valid for port 0: not connected.
func hexPeer(s string) netip.AddrPort {
	address, port, _ := strings.Cut(s, ":")
	p, err := strconv.ParseUint(port, 16, 16)
	b, err2 := hex.DecodeString(address)
	if err != nil || err2 != nil || p == 0 || len(b)%4 != 0 {
		return netip.AddrPort{}
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(p))
}
