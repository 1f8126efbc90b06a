package sockdiag_test

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// lookup asks for all of the sockets at once; nil for those that are not found.
func lookup(t *testing.T, c *sockdiag.Conn, ids []sockdiag.ConnectionID, info bool) []*sockdiag.Socket {
	t.Helper()
	out := make([]*sockdiag.Socket, len(ids))
	answers := 0
	require.NoError(t, c.LookupConnections(ids, info, func(i int, s *sockdiag.Socket, err error) {
		answers++
		if err != nil {
			require.ErrorIs(t, err, sockdiag.ErrNotFound)
			return
		}
		found := *s
		out[i] = &found
	}))
	require.Equal(t, len(ids), answers, "one answer each")
	return out
}

func idsOf(sockets []sockdiag.Socket) (ids []sockdiag.ConnectionID) {
	for i := range sockets {
		ids = append(ids, sockets[i].ID())
	}
	return ids
}

// TestLookupConnections: exact requests answer what a walk answers, for both
// families, mapped addresses, a device, half-open and queued connections.
func TestLookupConnections(t *testing.T) {
	ns := nettest.Namespace(t)
	var ports []uint16
	ns.Do(func() {
		for _, o := range []nettest.ListenOptions{
			{Address: "127.0.0.1:8080"},
			{Address: "[::1]:8081"},
			{Address: "[::]:8082"},
			{Address: "[::ffff:127.0.0.1]:8083"},
			{Address: "0.0.0.0:8084", Device: "lo"},
			{Address: "127.0.0.1:8085", DeferAccept: 30},
		} {
			o.Backlog = 100
			l := nettest.Listen(t, o)
			to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Addr.Port())
			if o.Address == "[::1]:8081" {
				to = l.Addr
			}
			for _, client := range nettest.Queue(t, to, 7) {
				if o.DeferAccept == 0 {
					_, err := client.Write([]byte("twelve bytes"))
					require.NoError(t, err)
				}
			}
			ports = append(ports, l.Addr.Port())
		}
	})
	c := dial(t, ns)
	walked := sockets(t, c, ports...)
	require.Len(t, walked, 6*7)
	for i, s := range lookup(t, c, idsOf(walked), true) {
		require.NotNil(t, s, "%+v", walked[i])
		require.Equal(t, walked[i].HasInfo, s.HasInfo)
		require.Equal(t, walked[i].Info.BytesReceived, s.Info.BytesReceived)
		s.Info, s.Expires = walked[i].Info, walked[i].Expires // the ages have grown, a timer runs
		require.Equal(t, walked[i], *s)
	}
	for i, s := range lookup(t, c, idsOf(walked), false) {
		require.NotNil(t, s)
		require.False(t, s.HasInfo)
		require.Equal(t, walked[i].RecvQ, s.RecvQ)
	}
}

// TestLookupConnectionsAfterTheEnd follows the server's ends through what the
// kernel answers of them after the server, the client, or both have closed.
func TestLookupConnectionsAfterTheEnd(t *testing.T) {
	ns := nettest.Namespace(t)
	l := listen(t, ns, nettest.ListenOptions{Backlog: 20})
	c := dial(t, ns)
	var clients, accepted []net.Conn
	ns.Do(func() {
		clients = nettest.Queue(t, l.Addr, 5)
		accepted = l.Accept(t, 5)
	})
	byPeer := map[netip.AddrPort]sockdiag.ConnectionID{}
	for _, s := range sockets(t, c, l.Addr.Port()) {
		require.NotZero(t, s.Inode)
		require.NotZero(t, s.Cookie)
		byPeer[s.RemoteAddress()] = s.ID()
	}
	ids := make([]sockdiag.ConnectionID, 5)
	for i, client := range clients {
		ids[i] = byPeer[client.LocalAddr().(*net.TCPAddr).AddrPort()]
	}
	require.NoError(t, clients[1].Close())
	require.NoError(t, accepted[2].Close())
	require.NoError(t, accepted[3].Close())
	require.NoError(t, clients[3].Close())
	require.NoError(t, clients[4].(*net.TCPConn).SetLinger(0))
	require.NoError(t, clients[4].Close()) // RST: it leaves the table at once

	states := func() (names [5]string) {
		for i, s := range lookup(t, c, ids, true) {
			names[i] = "none"
			if s != nil {
				names[i] = s.State.String()
				require.Equal(t, s.State == sockdiag.Established || s.State == sockdiag.CloseWait, s.Inode != 0)
			}
		}
		return names
	}
	require.Eventually(t, func() bool { // the ACK of a FIN may be delayed
		return states() == [5]string{"ESTABLISHED", "CLOSE_WAIT", "FIN_WAIT2", "TIME_WAIT", "none"}
	}, time.Minute, 5*time.Millisecond, "%v", states())

	other := append([]sockdiag.ConnectionID(nil), ids[0], ids[0])
	other[0].Cookie++
	other[1].Remote = netip.AddrPortFrom(other[1].Remote.Addr(), 1) // with the listener's address
	require.Equal(t, []*sockdiag.Socket{nil, nil}, lookup(t, c, other, false))
	other[0].Cookie = 0
	require.NoError(t, c.LookupConnections(other[:1], false, func(_ int, _ *sockdiag.Socket, err error) {
		require.ErrorIs(t, err, syscall.EINVAL)
	}))
	require.NoError(t, c.LookupConnections(nil, false, nil))
}

// TestWalkForEverything finds both ends' connections in one walk, with and
// without tcp_info.
func TestWalkForEverything(t *testing.T) {
	ns := nettest.Namespace(t)
	ns.Sysctl(t, "net.ipv4.ip_local_port_range", "40000 60000")
	l := listen(t, ns, nettest.ListenOptions{Address: "[::]:8080", Backlog: 100})
	other := listen(t, ns, nettest.ListenOptions{Address: "127.0.0.1:50000", Backlog: 100})
	queue(t, ns, netip.MustParseAddrPort("127.0.0.1:8080"), 30)
	queue(t, ns, other.Addr, 20)
	c := dial(t, ns)
	wanted := sockdiag.Wanted{Ports: sockdiag.PortsOf(l.Addr.Port()), States: sockdiag.Connected(), Info: true}
	wanted.Ports.AddRange(40000, 60000)
	wanted.Ports.Remove(50000) // a server's
	for _, wanted.Info = range []bool{true, false} {
		byPeer := map[uint16]int{}
		require.NoError(t, c.Walk(wanted, func(s *sockdiag.Socket) error {
			require.Equal(t, wanted.Info, s.HasInfo)
			if s.Local.Port() == 8080 {
				byPeer[0]++
			} else {
				byPeer[s.Remote.Port()]++
			}
			return nil
		}))
		require.Equal(t, map[uint16]int{0: 30, 8080: 30, 50000: 20}, byPeer)
	}
}

// TestCgroup: the kernel reports the cgroup that a socket was made in, and walks
// for one cgroup only.
func TestCgroup(t *testing.T) {
	ns := nettest.Namespace(t)
	inside, id := enterCgroup(t)
	l := listen(t, ns, nettest.ListenOptions{Backlog: 20})
	queue(t, ns, l.Addr, 3)
	inside.leave(t)
	outside := listen(t, ns, nettest.ListenOptions{Backlog: 20})
	queue(t, ns, outside.Addr, 4)

	c := dial(t, ns)
	cgroups := map[uint64]int{}
	for _, s := range sockets(t, c, l.Addr.Port(), outside.Addr.Port()) {
		cgroups[s.Cgroup]++
	}
	require.Equal(t, 3, cgroups[id], "%v", cgroups)
	require.Len(t, cgroups, 2)
	for cgroup, want := range map[uint64]int{id: 3, 0: 7} {
		n := 0
		require.NoError(t, c.Walk(sockdiag.Wanted{
			Ports: sockdiag.PortsOf(l.Addr.Port(), outside.Addr.Port()), States: sockdiag.Connected(), Cgroup: cgroup,
		}, func(*sockdiag.Socket) error { n++; return nil }))
		require.Equal(t, want, n)
	}
}

// cgroup is one of the test's own, and where the test was before.
type cgroup struct{ before string }

// enterCgroup skips where no cgroup v2 file system may be written.
func enterCgroup(t *testing.T) (cgroup, uint64) {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
			continue
		}
		c := cgroup{before: filepath.Join(root, ownCgroup(t))}
		dir, err := os.MkdirTemp(c.before, "tcpdiag-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { c.leave(t); _ = os.Remove(dir) })
		moveTo(t, dir)
		info, err := os.Stat(dir)
		require.NoError(t, err)
		return c, info.Sys().(*syscall.Stat_t).Ino
	}
	t.Skip("no cgroup v2 file system that may be written")
	return cgroup{}, 0
}

func (c cgroup) leave(t *testing.T) {
	t.Helper()
	moveTo(t, c.before)
}

func moveTo(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o600))
}

// ownCgroup is the line of the unified hierarchy, "0::/path".
func ownCgroup(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(path)
		}
	}
	return "/"
}

// What a client meets is found by the ends alone, whatever its socket is bound to: its
// connection, open or half-open, else the listener, else nothing.
func TestBetween(t *testing.T) {
	ns := nettest.Namespace(t)
	for _, o := range []nettest.ListenOptions{
		{Address: "127.0.0.1:8080"},
		{Address: "[::1]:8081"},
		{Address: "[::]:8082"},
		{Address: "0.0.0.0:8084", Device: "lo"},
		{Address: "127.0.0.1:8085", DeferAccept: 30},
	} {
		ns.Do(func() {
			o.Backlog = 100
			l := nettest.Listen(t, o)
			to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Addr.Port())
			if o.Address == "[::1]:8081" {
				to = l.Addr
			}
			client := nettest.Queue(t, to, 1)[0].LocalAddr().(*net.TCPAddr).AddrPort()
			c, err := sockdiag.Dial()
			require.NoError(t, err)
			defer c.Close()
			want := sockdiag.Established
			if o.DeferAccept > 0 {
				want = sockdiag.SynRecv
			}
			between := func(to, client netip.AddrPort) sockdiag.State {
				met, err := c.Between(to, client, 1)
				require.NoError(t, err)
				return met.State
			}
			require.Equal(t, want, between(to, client), o.Address)
			require.Equal(t, sockdiag.Listen, between(to, netip.AddrPortFrom(client.Addr(), client.Port()^1)), o.Address)
			require.Zero(t, between(netip.AddrPortFrom(to.Addr(), to.Port()^0x4000), client), o.Address)
		})
	}
}
