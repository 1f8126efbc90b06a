package sockdiag_test

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Of all sockets that are freed those of clients that a reset has refused are heard of, whoever has sent it; by any user.
func TestRefusals(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("nft is not installed")
	}
	ns := nettest.Namespace(t)
	ports := nettest.FreePorts(t, 5)
	at := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(ports[i]))
	}
	closed, rejects, drops, unreachable, open := at(0), at(1), at(2), at(3), at(4)
	rule := func(to netip.AddrPort, verdict string) {
		out, err := ns.Command(nft, fmt.Sprintf("add rule inet t c tcp dport %d %s", to.Port(), verdict)).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	out, err := ns.Command(nft, "add table inet t; add chain inet t c { type filter hook input priority 0; }").CombinedOutput()
	if err != nil {
		t.Skipf("nft: %s", out)
	}
	rule(rejects, "tcp flags & (syn | ack) == syn reject with tcp reset")
	rule(drops, "drop")
	rule(unreachable, "reject")

	var r *sockdiag.Refusals
	var server *nettest.Listener
	ns.Do(func() {
		for _, to := range []netip.AddrPort{rejects, drops, unreachable, open} {
			server = nettest.Listen(t, nettest.ListenOptions{Address: to.String(), Backlog: 20})
		}
		r, err = sockdiag.ListenRefusals()
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	heard := func(n int) (list []netip.AddrPort) {
		nettest.Within(t, time.Minute, "sockets are heard of", func() bool {
			missed, err := r.Read(func(s *sockdiag.Socket) { list = append(list, s.RemoteAddress()) })
			require.NoError(t, err)
			require.False(t, missed)
			return len(list) >= n
		})
		return list
	}
	ns.Do(func() {
		d := net.Dialer{Timeout: 50 * time.Millisecond}
		for _, to := range []netip.AddrPort{drops, unreachable} { // it gives up; it is told by ICMP
			_, err := d.Dial("tcp", to.String())
			require.Error(t, err)
		}
		reset, err := net.Dial("tcp", open.String()) // by the server, as with tcp_abort_on_overflow
		require.NoError(t, err)
		accepted := server.Accept(t, 1)[0]
		require.NoError(t, accepted.(*net.TCPConn).SetLinger(0))
		require.NoError(t, accepted.Close())
		_, err = reset.Read(make([]byte, 1))
		require.ErrorIs(t, err, unix.ECONNRESET)
		require.NoError(t, reset.Close())
		for _, linger := range []int{-1, 0} { // closed in order, and by a reset
			c, err := net.Dial("tcp", open.String())
			require.NoError(t, err)
			require.NoError(t, c.(*net.TCPConn).SetLinger(linger))
			require.NoError(t, c.Close())
		}
		blocking(t, rejects) // its port is cleared before it is freed
		for _, to := range []netip.AddrPort{rejects, closed} {
			_, err := net.Dial("tcp", to.String())
			require.ErrorIs(t, err, unix.ECONNREFUSED)
		}
	})
	require.ElementsMatch(t, []netip.AddrPort{rejects, closed}, heard(2))
}

// blocking connects without a loop of events.
func blocking(t *testing.T, to netip.AddrPort) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.ErrorIs(t, unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}), unix.ECONNREFUSED)
	require.NoError(t, unix.Close(fd))
}

// Where nobody reads, the kernel keeps some hundred, and says that there were more.
func TestRefusalsAreBounded(t *testing.T) {
	ns := nettest.Namespace(t)
	to := nettest.FreePorts(t, 1)[0]
	var r *sockdiag.Refusals
	ns.Do(func() {
		var err error
		r, err = sockdiag.ListenRefusals()
		require.NoError(t, err)
		for range 5000 {
			_, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: to})
			require.ErrorIs(t, err, unix.ECONNREFUSED)
		}
	})
	defer func() { require.NoError(t, r.Close()) }()
	heard, missed := 0, false
	nettest.Within(t, time.Minute, "the kernel says so", func() bool {
		more, err := r.Read(func(*sockdiag.Socket) { heard++ })
		require.NoError(t, err)
		missed = missed || more
		return missed
	})
	require.Positive(t, heard)
	require.Less(t, heard, 5000)
}
