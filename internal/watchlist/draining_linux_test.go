package watchlist

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// A process that is stopped serves nobody, nor does one that has ended.
func TestWhoRuns(t *testing.T) {
	proc := hostfs.Real(t)
	sleep := nettest.Namespace(t).Command("sleep", "600")
	proctest.Run(t, sleep)
	pid := sleep.Process.Pid
	require.True(t, runs(proc, pid))
	require.NoError(t, sleep.Process.Signal(unix.SIGSTOP))
	require.Eventually(t, func() bool { return !runs(proc, pid) }, time.Minute, time.Millisecond)
	require.NoError(t, sleep.Process.Kill())
	require.Eventually(t, func() bool {
		p, err := proc.Process(pid)
		return err != nil || p.Exited()
	}, time.Minute, time.Millisecond)
	require.False(t, runs(proc, pid), "it has not been waited for")
}

// A server that began to listen since the listeners were listed has connections, and has closed no listener. Nor is it
// said of a port that outgoing connections may have.
func TestServerThatHasJustBegunDrainsNothing(t *testing.T) {
	proc := hostfs.Real(t)
	ns := nettest.Namespace(t)
	sleep := ns.Command("sleep", "600")
	proctest.Run(t, sleep)
	own, err := proc.NetID(unix.Getpid())
	require.NoError(t, err)
	require.Eventually(t, func() bool { // nsenter is still on its way
		id, err := proc.NetID(sleep.Process.Pid)
		return err == nil && id != own
	}, time.Minute, time.Millisecond)
	src := &Sources{Mount: "/proc", Proc: proc, Owners: owner.New(proc)}
	n, err := newNamespaces(src).enter(sleep.Process.Pid, time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	require.NoError(t, n.Follow(time.Unix(1, 0)))
	listeners := make(map[uint16]*nettest.Listener)
	ns.Do(func() {
		for _, address := range []string{"127.0.0.1:8080", "[::1]:8081", "127.0.0.1:40000"} {
			l := nettest.Listen(t, nettest.ListenOptions{Address: address, Backlog: 5})
			nettest.Queue(t, l.Addr, 2)
			l.Accept(t, 2)
			listeners[l.Addr.Port()] = l
		}
	})
	r := &listing{Lister: &Lister{Sources: src}, List: &List{Watchlist: &facts.Watchlist{At: time.Unix(1, 0)}}}
	ports := []uint16{8080, 8081, 40000}
	require.Empty(t, r.drainingIn(n, ports))
	for _, l := range listeners {
		l.Close()
	}
	found := r.drainingIn(n, ports)
	require.Len(t, found, 2)
	for i, s := range found {
		require.Equal(t, ports[i], s.target.Port)
		require.Equal(t, unix.Getpid(), s.connected.PID)
		require.Equal(t, 2, s.connected.Connections)
	}
}

// Between two searches the process may have ended, and its number may be another's.
func TestDrainingServerThatEnded(t *testing.T) {
	proc := hostfs.Real(t)
	target := model.Target{Port: 8080, NetNS: 1}
	own, err := proc.Stat(unix.Getpid())
	require.NoError(t, err)
	for start, there := range map[uint64]bool{own.StartTime: true, own.StartTime + 1: false} {
		d := draining{at: time.Unix(1, 0), found: []drainingServer{{target: target, start: start, connected: model.OtherProcess{PID: unix.Getpid(), Connections: 3}}}}
		got := []model.Target{target}
		d.say(proc, got)
		require.Equal(t, there, got[0].Draining != nil)
	}
	got := []model.Target{{Port: 8080, NetNS: 1, Up: true}, {Port: 8080, NetNS: 2}}
	(&draining{found: []drainingServer{{target: target, start: own.StartTime, connected: model.OtherProcess{PID: unix.Getpid()}}}}).say(proc, got)
	require.Nil(t, got[0].Draining, "it listens again")
	require.Nil(t, got[1].Draining, "in another namespace")
}

// The connections of one missed port leave those of the others their room, and those of one user another's turn.
func TestDrainingPortsShareTheRoom(t *testing.T) {
	var found served
	inode := uint32(0)
	add := func(n int, port uint16, uid uint32) {
		for range n {
			inode++
			found.add(owner.Socket{Inode: inode, Port: port, UID: uid}, 100)
			require.LessOrEqual(t, found.all, 100)
		}
	}
	add(1000, 8080, 1)
	add(10, 8081, 1)
	add(1000, 8082, 1)
	add(10, 8083, 1)
	for port, want := range map[uint16]int{8080: 40, 8081: 10, 8082: 40, 8083: 10} {
		require.InDelta(t, want, len(found.ports[port]), 1, port)
	}
	found = served{}
	add(50, 8080, 1)
	add(2, 8080, 2)
	add(1, 8080, 3)
	var users []uint32
	for _, s := range inTurns(found.ports[8080])[:6] {
		users = append(users, s.UID)
	}
	require.Equal(t, []uint32{1, 2, 3, 1, 2, 1}, users)
}
