package guest

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// bench is a namespace with a listener, read through both of the kernel's
// accounts.
type bench struct {
	*nettest.NS
	l    *nettest.Listener
	diag *sockdiag.Conn
}

func newBench(t *testing.T, backlog int) *bench {
	t.Helper()
	b := &bench{NS: nettest.Namespace(t)}
	b.Do(func() {
		b.l = nettest.Listen(t, nettest.ListenOptions{Backlog: backlog})
		b.dial(t)
	})
	return b
}

func (b *bench) dial(t *testing.T) {
	t.Helper()
	var err error
	b.diag, err = sockdiag.Dial()
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.diag.Close() })
}

func (b *bench) listener(t *testing.T) sockdiag.Listener {
	t.Helper()
	var l sockdiag.Listener
	require.NoError(t, b.diag.Lookup(sockdiag.ListenerID{Family: sockdiag.FamilyIPv4, Local: b.l.Addr}, b.l.Inode, &l))
	return l
}

// counters are the namespace's, read by a thread in it.
func (b *bench) counters(t *testing.T) (c netstat.ListenCounters) {
	t.Helper()
	b.Do(func() {
		file, err := netstat.OpenListenCounters(proc(t), hostproc.CallingThread)
		require.NoError(t, err)
		defer file.Close()
		require.NoError(t, file.Read(&c))
	})
	return c
}

// sk_acceptq_is_full uses >, so a queue of backlog 5 holds six.
func TestAcceptQueueHoldsOneMore(t *testing.T) {
	inGuest(t)
	b := newBench(t, 5)
	b.Do(func() {
		nettest.Queue(t, b.l.Addr, 6)
		nettest.Overflow(t, b.l.Addr, 3)
	})
	l := b.listener(t)
	require.EqualValues(t, 6, l.RecvQ)
	require.EqualValues(t, 5, l.SendQ)
	require.EqualValues(t, 3, b.counters(t).ListenOverflows)
	report("accept queue holds", "backlog + 1")
}

// What a dropped SYN, and a dropped final ACK, add to the socket's own counter
// and to the namespace's.
func TestDropCounters(t *testing.T) {
	inGuest(t)
	b := newBench(t, 1)
	b.Do(func() { nettest.Queue(t, b.l.Addr, 2) })
	require.True(t, b.listener(t).HasDrops)
	before, drops := b.counters(t), b.listener(t).Drops
	b.Do(func() { nettest.Overflow(t, b.l.Addr, 10) })
	after := b.counters(t)
	require.EqualValues(t, 10, after.ListenDrops-before.ListenDrops)
	require.EqualValues(t, 10, after.ListenOverflows-before.ListenOverflows)
	require.EqualValues(t, 10, b.listener(t).Drops-drops)
	report("a SYN dropped at a full accept queue", "socket + 1, ListenDrops + 1, ListenOverflows + 1")
}

// somaxconn clamps at the time of listen(2).
func TestSomaxconnClampsAtListen(t *testing.T) {
	inGuest(t)
	b := &bench{NS: nettest.Namespace(t)}
	b.Sysctl(t, "net.core.somaxconn", "7")
	b.Do(func() {
		b.l = nettest.Listen(t, nettest.ListenOptions{Backlog: 100})
		b.dial(t)
	})
	require.EqualValues(t, 7, b.listener(t).SendQ)
	b.Sysctl(t, "net.core.somaxconn", "50")
	require.EqualValues(t, 7, b.listener(t).SendQ)
	b.l.Relisten(t, 100)
	require.EqualValues(t, 50, b.listener(t).SendQ)
	report("somaxconn", "clamps at listen(2), again at the next listen(2)")
}

// The SYN queue's limit is the listener's backlog (inet_csk_reqsk_queue_is_full:
// >= until early 2025, > since); what comes then is answered with a cookie.
func TestSYNQueueLimit(t *testing.T) {
	inGuest(t)
	const backlog, sent = 10, 40
	clients, b := nettest.Namespace(t), &bench{NS: nettest.Namespace(t)}
	_, server := nettest.Veth(t, clients, b.NS)
	b.Do(func() {
		b.l = nettest.Listen(t, nettest.ListenOptions{Address: netip.AddrPortFrom(server, 0).String(), Backlog: backlog})
		b.dial(t)
	})
	clients.Do(func() { nettest.HalfOpen(t, b.l.Addr, 1, sent) })
	require.Eventually(t, func() bool { return b.counters(t).ReqQFullDoCookies > 0 }, time.Minute, 10*time.Millisecond)
	half := 0
	require.NoError(t, b.diag.Sockets([]uint16{b.l.Addr.Port()}, sockdiag.Connected(), func(s *sockdiag.Socket) error {
		half++
		return nil
	}))
	require.GreaterOrEqual(t, half, backlog)
	require.LessOrEqual(t, half, backlog+1)
	report("SYN queue holds", "backlog%s, then cookies", map[bool]string{true: " + 1"}[half > backlog])
}

// The client's kernel repeats its SYN: tcp_syn_linear_timeouts (6.5) times at
// the first interval, then at double the last.
func TestSYNRetries(t *testing.T) {
	inGuest(t)
	b := newBench(t, 1)
	b.Do(func() { nettest.Queue(t, b.l.Addr, 2) })
	start, drops := time.Now(), b.counters(t).ListenDrops
	b.Do(func() { startConnecting(t, b.l.Addr) })
	var at []string
	for time.Since(start) < 12*time.Second {
		if now := b.counters(t).ListenDrops; now != drops {
			drops = now
			at = append(at, fmt.Sprintf("%.0f", time.Since(start).Seconds()))
		}
		time.Sleep(20 * time.Millisecond)
	}
	want := "0, 1, 3, 7"
	if kernelAtLeast(t, 6, 5) {
		want = "0, 1, 2, 3, 4, 5, 7, 11"
	}
	require.Equal(t, want, strings.Join(at, ", "))
	require.Equal(t, kernelAtLeast(t, 6, 5), exists("/proc/sys/net/ipv4/tcp_syn_linear_timeouts"))
	report("SYN repeated after", "%s s", strings.TrimPrefix(want, "0, "))
}

// startConnecting leaves a connection in SYN_SENT until the test ends.
func startConnecting(t *testing.T, to netip.AddrPort) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.ErrorIs(t, unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}), unix.EINPROGRESS)
}
