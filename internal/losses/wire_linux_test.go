package losses

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// wire plays clients packet by packet, from an address that nobody has, so
// that no kernel answers in their place. It sits at the far end of a veth.
type wire struct {
	tb       testing.TB
	src      [4]byte
	dst      netip.AddrPort
	out, tap int // raw socket to send, packet socket to see the answers
}

func newWire(tb testing.TB, ns *nettest.NS, dst netip.AddrPort) *wire {
	tb.Helper()
	w := &wire{tb: tb, src: [4]byte{198, 18, 0, 7}, dst: dst}
	ns.Do(func() {
		var err error
		w.out, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		require.NoError(tb, err)
		ip := uint16(unix.ETH_P_IP)
		w.tap, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(ip>>8|ip<<8))
		require.NoError(tb, err)
		require.NoError(tb, unix.SetsockoptTimeval(w.tap, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2}))
	})
	tb.Cleanup(func() { _, _ = unix.Close(w.out), unix.Close(w.tap) })
	return w
}

const (
	flagSYN = 0x02
	flagRST = 0x04
	flagACK = 0x10
)

func (w *wire) send(sport uint16, seq, ack uint32, flags byte, data string) {
	w.tb.Helper()
	to := w.dst.Addr().As4()
	tcp := make([]byte, 20, 20+len(data))
	binary.BigEndian.PutUint16(tcp, sport)
	binary.BigEndian.PutUint16(tcp[2:], w.dst.Port())
	binary.BigEndian.PutUint32(tcp[4:], seq)
	binary.BigEndian.PutUint32(tcp[8:], ack)
	tcp[12], tcp[13] = 5<<4, flags
	binary.BigEndian.PutUint16(tcp[14:], 65535) // window
	tcp = append(tcp, data...)
	pseudo := append(append([]byte{}, w.src[:]...), to[:]...)
	pseudo = append(pseudo, 0, unix.IPPROTO_TCP, 0, byte(len(tcp)))
	binary.BigEndian.PutUint16(tcp[16:], internetSum(append(pseudo, tcp...)))
	ip := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, unix.IPPROTO_TCP, 0, 0} // length and sum are the kernel's to fill
	ip = append(append(ip, w.src[:]...), to[:]...)
	require.NoError(w.tb, unix.Sendto(w.out, append(ip, tcp...), 0, &unix.SockaddrInet4{Addr: to}))
}

// internetSum is that of RFC 1071.
func internetSum(b []byte) uint16 {
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	var sum uint32
	for ; len(b) > 0; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// open begins a handshake and returns the server's sequence number.
func (w *wire) open(sport uint16) uint32 {
	w.tb.Helper()
	w.send(sport, 1000, 0, flagSYN, "")
	buf := make([]byte, 2048)
	for {
		n, _, err := unix.Recvfrom(w.tap, buf, 0)
		require.NoError(w.tb, err, "no SYN-ACK for port %d", sport)
		if b := buf[:n]; n >= 40 && b[9] == unix.IPPROTO_TCP && b[33]&(flagSYN|flagACK) == flagSYN|flagACK &&
			binary.BigEndian.Uint16(b[20:]) == w.dst.Port() && binary.BigEndian.Uint16(b[22:]) == sport {
			return binary.BigEndian.Uint32(b[24:])
		}
	}
}

// openMany begins n handshakes: sequence numbers by port.
func (w *wire) openMany(from uint16, n int) (ports []uint16, seq map[uint16]uint32) {
	seq = make(map[uint16]uint32, n)
	for i := range n {
		p := from + uint16(i)
		ports, seq[p] = append(ports, p), w.open(p)
	}
	return ports, seq
}

// kernelReader reads what an agent would: the namespace's counters first, then
// the drops of its listeners.
type kernelReader struct {
	tb   testing.TB
	ns   *nettest.NS
	conn *sockdiag.Conn
}

func newKernelReader(tb testing.TB, ns *nettest.NS) *kernelReader {
	tb.Helper()
	k := &kernelReader{tb: tb, ns: ns}
	ns.Do(func() {
		var err error
		k.conn, err = sockdiag.Dial()
		require.NoError(tb, err)
	})
	tb.Cleanup(func() { _ = k.conn.Close() })
	return k
}

func (k *kernelReader) read() (NamespaceCounts, []SocketDrops) {
	k.tb.Helper()
	var counts NamespaceCounts
	k.ns.Do(func() { counts = readTCPExt(k.tb) })
	var sockets []SocketDrops
	require.NoError(k.tb, k.conn.Listeners(func(l *sockdiag.Listener) error {
		id := listenerID(l.Local.Port())
		sockets = append(sockets, SocketDrops{ID: id, Inode: l.Inode, Drops: l.Drops, Watched: true})
		return nil
	}))
	return counts, sockets
}

// settled waits until nothing has moved for a while: packets travel through
// softirqs of their own.
func (k *kernelReader) settled() (NamespaceCounts, []SocketDrops) {
	k.tb.Helper()
	counts, sockets := k.read()
	for quiet := time.Now(); time.Since(quiet) < 100*time.Millisecond; {
		time.Sleep(10 * time.Millisecond)
		c, s := k.read()
		if c != counts || len(s) != len(sockets) {
			quiet = time.Now()
		}
		counts, sockets = c, s
	}
	return counts, sockets
}

func readTCPExt(tb testing.TB) NamespaceCounts {
	tb.Helper()
	get := nettest.TCPExt(tb)
	return NamespaceCounts{
		ListenDrops: get("ListenDrops"), ListenOverflows: get("ListenOverflows"), ReqQFullDrop: get("TCPReqQFullDrop"),
		ReqQFullDoCookies: get("TCPReqQFullDoCookies"), SyncookiesRecv: get("SyncookiesRecv"),
	}
}
