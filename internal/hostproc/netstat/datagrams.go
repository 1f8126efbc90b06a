package netstat

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	iofs "io/fs"
	"net/netip"
	"os"
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
	for _, name := range []string{"udp", "udp6"} {
		err := eachSocket(fs, pid, socketTable{name, 9}, func(inode uint32, line []byte) {
			fn(inode, hexPeer(string(nthField(line, 2))))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// UnixSockets calls fn with the inode of each socket of the Unix domain there, of 16,384 at most.
func UnixSockets(fs hostproc.FS, pid int, fn func(inode uint32)) error {
	return eachSocket(fs, pid, socketTable{"unix", 6}, func(inode uint32, _ []byte) { fn(inode) })
}

func eachSocket(fs hostproc.FS, pid int, t socketTable, fn func(inode uint32, line []byte)) error {
	f, err := os.Open(fs.Path(pid, "net", t.name))
	if errors.Is(err, iofs.ErrNotExist) && t.name == "udp6" {
		return nil // without IPv6
	}
	if err != nil {
		return fs.Wrap(pid, "net/"+t.name, err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // the heading
	for n := 0; n < mostSockets && lines.Scan(); n++ {
		if inode, err := strconv.ParseUint(string(nthField(lines.Bytes(), t.column)), 10, 32); err == nil {
			fn(uint32(inode), lines.Bytes())
		}
	}
	return lines.Err()
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
