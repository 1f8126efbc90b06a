package tap

import (
	"errors"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// attempts is how many clients TestManyClients starts.
func attempts() int { return proof.Size(1_000_000, 30_000) }

// Many clients, over the loopback and a veth, one after the other and as fast as
// they can, so that each of
// the system's 28,232 ports is used again and again: a third meets a server that
// takes them, a third a full queue, a third nothing. They count themselves: those that gave
// up and were refused exactly.
//
// Each SYN that the kernel dropped (ListenDrops) is of a client that was counted.
func TestManyClients(t *testing.T) {
	on(t, "loopback", "127.0.0.1", manyClients)
	across(t, "veth", nettest.Veth, manyClients)
	acrossOneWay(t, manyClients)
}

func manyClients(t *testing.T, w world) {
	n := attempts()
	w.server.Sysctl(t, "net.core.somaxconn", "4096")
	open, full := w.listen(t, 4096), w.listen(t, 0)
	closed := netip.AddrPortFrom(w.addr, 1)
	settled(t, w.connect(t, full.Addr, 1))
	tap := w.tap(t, open.Addr.Port(), full.Addr.Port(), closed.Port())
	go acceptAll(open.File(t))
	drops := w.listenDrops(t)

	want := make(map[netip.AddrPort][outcome.NumOutcomes]uint64)
	w.clients.Do(func() {
		for i := range n {
			if i%500 == 0 { // the ring holds some thousand packets, and this machine may be busy
				_, err := tap.Report()
				require.NoError(t, err)
			}
			to := []netip.AddrPort{open.Addr, full.Addr, closed}[i%3]
			counts := want[to]
			counts[one(t, to, to == full.Addr)]++
			want[to] = counts
		}
	})
	unanswered := uint64(0)
	for to, counts := range want {
		got := decided(t, tap, to, sumOf(counts))
		unanswered += got.Unanswered
		for _, exact := range []outcome.Outcome{outcome.GaveUp, outcome.Refused, outcome.Stalled, outcome.Reset, outcome.HalfOpen} {
			require.Equal(t, counts[exact], got.Clients[exact], "%v at %v: %v, by their own count %v", exact, to, got.Clients, counts)
		}
		// Where the client sees a delay below a second the kernel may have repeated its
		// SYN-ACK all the same.
		require.InDelta(t, counts[outcome.Connected], got.Clients[outcome.Connected], .001*float64(counts[outcome.Connected]), "%v", to)
	}
	require.Equal(t, w.listenDrops(t)-drops, unanswered)
	t.Logf("%d clients: %v, %d SYNs dropped", n, want, unanswered)
}

func (w world) listenDrops(t *testing.T) (n uint64) {
	w.server.Do(func() { n = nettest.TCPExt(t)("ListenDrops") })
	return n
}

// one is a client, and what it reports as its outcome.
func one(t *testing.T, to netip.AddrPort, impatient bool) outcome.Outcome {
	flags := unix.SOCK_STREAM | unix.SOCK_CLOEXEC
	if impatient {
		flags |= unix.SOCK_NONBLOCK
	}
	fd, err := unix.Socket(unix.AF_INET, flags, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	err = unix.Connect(fd, sockaddrOf(to))
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return outcome.Refused
	case errors.Is(err, unix.EINPROGRESS):
		return outcome.GaveUp
	}
	require.NoError(t, err)
	// RST: no port waits in TIME_WAIT.
	require.NoError(t, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	require.NoError(t, err)
	if info.Total_retrans > 0 { // of its SYN: it has sent nothing else
		return outcome.Delayed
	}
	return outcome.Connected
}

// acceptAll takes connections and ends them, until the listener is closed.
func acceptAll(listener *os.File) {
	defer listener.Close()
	for {
		fd, _, err := unix.Accept4(int(listener.Fd()), unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		_ = unix.Close(fd)
	}
}
