package schedule

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Outgoing connections near the range of ephemeral ports are the process's that
// holds them. TIME_WAIT sockets of others use ports, too.
func TestScriptedOutgoing(t *testing.T) {
	w := usingPorts(t, nil)
	w.scanned()
	w.pass(time.Minute)
	var l *model.Listener
	for range 30 {
		l = w.only(w.second())
	}
	require.NotNil(t, l.Process.Busiest)
	require.Equal(t, 90, l.Process.Busiest.Ports)
	require.Equal(t, "10.0.0.9:5432", l.Process.Busiest.Address.String())
	require.Equal(t, model.StatusWarning, l.Verdict.Status, "%+v", l.Limits)
	require.Equal(t, model.CauseEphemeralPorts, l.Verdict.Cause)
}

// Of a server that has worker processes these hold them.
func TestScriptedOutgoingOfWorkers(t *testing.T) {
	w := usingPorts(t, nil)
	const first, second = 4711, 4712
	var halves [2][]uint32
	for i := range 90 {
		halves[i%2] = append(halves[i%2], 5000+uint32(i))
	}
	w.process(first, "server", halves[0]...)
	w.process(second, "server", halves[1]...)
	w.works(first, second)
	w.holds(serverPID, 1)
	w.scanned()
	w.pass(time.Minute)
	var l *model.Listener
	for range 30 {
		l = w.only(w.second())
	}
	require.Equal(t, 2, l.Process.Children)
	require.NotNil(t, l.Process.Busiest)
	require.Equal(t, 90, l.Process.Busiest.Ports)
	require.Equal(t, model.CauseEphemeralPorts, l.Verdict.Cause)
}

// works makes the server nginx, and processes its workers.
func (w *world) works(workers ...int) {
	w.t.Helper()
	var children []byte
	for _, pid := range append(workers, serverPID) {
		path := filepath.Join(w.dir, fmt.Sprint(pid), "stat")
		text, err := os.ReadFile(path)
		require.NoError(w.t, err)
		require.NoError(w.t, os.WriteFile(path, bytes.Replace(text, []byte("(java)"), []byte("(nginx)"), 1), 0o600))
		if pid != serverPID {
			children = fmt.Appendf(children, "%d ", pid)
		}
	}
	require.NoError(w.t, os.WriteFile(filepath.Join(w.dir, fmt.Sprint(serverPID), "task", fmt.Sprint(serverPID), "children"), children, 0o600))
}

// Where nobody looks for the ports that workers use, a server that holds nothing but its clients' sockets has no other one, and nobody
// looks for it among all those of the host.
func TestScriptedWorkersWhosePortsSuffice(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	k.sockstat = map[string]int{"inuse": 10_500, "tw": 0} // of 28,232 ports
	w := newWorld(t, k, nil)
	w.process(4711, "server")
	w.works(4711)
	w.scanned()
	var l *model.Listener
	for range 60 {
		l = w.only(w.second())
	}
	require.Equal(t, 1, l.Process.Children)
	require.Greater(t, k.walks, 5)
	require.Zero(t, k.apart)
}

// usingPorts is a machine of 100 ephemeral ports whose server uses 90 of them
// towards one peer. (No more: the search for owners continues a long list of
// descriptors where it stopped, which only /proc lists in their order.)
func usingPorts(t *testing.T, change func(*Options)) *world {
	t.Helper()
	k := newKernel(listensOn(8080, 1))
	k.sysctls["ip_local_port_range_max"] = 32768 + 99
	inodes := []uint32{1}
	for i := range 90 {
		inodes = append(inodes, 5000+uint32(i))
	}
	w := newWorld(t, k, change)
	w.holds(serverPID, inodes...)
	k.sockets = towards(90, 5000)
	k.sockstat = map[string]int{"inuse": 90, "tw": 0}
	return w
}

// Both readings of a one-shot have the ports, however short its interval is.
func TestScriptedOutgoingOfAOneShot(t *testing.T) {
	for _, interval := range []time.Duration{0, 200 * time.Millisecond, time.Second} {
		w := usingPorts(t, func(o *Options) { o.Now = time.Now })
		require.NoError(t, w.Observe(t.Context(), interval))
		l := w.only(w.Snapshot())
		require.Equal(t, model.CauseEphemeralPorts, l.Verdict.Cause, "%v: %+v", interval, l.Limits)
	}
}

// towards are n connections of ephemeral ports to one peer, with the inodes
// from first on.
func towards(n int, first uint32) (out []sockdiag.Socket) {
	for i := range n {
		out = append(out, sockdiag.Socket{
			Family: sockdiag.FamilyIPv4, State: sockdiag.Established, Inode: first + uint32(i),
			Local:  netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(32768+i)),
			Remote: netip.MustParseAddrPort("10.0.0.9:5432"),
		})
	}
	return out
}

// inTimeWait are the same two seconds after their owner has closed them.
func inTimeWait(sockets []sockdiag.Socket) []sockdiag.Socket {
	for i := range sockets {
		s := &sockets[i]
		s.State, s.Inode, s.HasInfo, s.Expires = sockdiag.TimeWait, 0, false, 58_000
	}
	return sockets
}

// Ports that are all in TIME_WAIT belong to no process: in a first snapshot as in any
// other they are the namespace's, with a warning, unless the kernel gives them again.
func TestScriptedPortsInTimeWait(t *testing.T) {
	for reuse, status := range map[int]model.Status{0: model.StatusWarning, 1: model.StatusOK, 2: model.StatusWarning} {
		w := usingPorts(t, func(o *Options) { o.Now = time.Now })
		k := w.kernels[w.netns(serverPID)]
		k.sysctls["tcp_tw_reuse"] = reuse
		k.sockets, k.sockstat = inTimeWait(k.sockets), map[string]int{"inuse": 0, "tw": 90}
		require.NoError(t, w.Observe(t.Context(), 200*time.Millisecond))
		l := w.only(w.Snapshot())
		require.Equal(t, status, l.Verdict.Status, "%d: %s", reuse, l.Verdict.Summary)
		if status == model.StatusWarning {
			require.Equal(t, model.CauseEphemeralPorts, l.Verdict.Cause)
			require.Equal(t, 90, l.Process.Busiest.TimeWait)
			require.True(t, l.Process.Busiest.Unowned)
		}
	}
}

// Who was seen to hold connections to a peer is taken for the one who has left the
// ports in TIME_WAIT.
func TestScriptedPortsOfWhoHeldThem(t *testing.T) {
	w := usingPorts(t, nil)
	w.scanned()
	w.pass(time.Minute)
	for range 30 {
		w.second()
	}
	k := w.kernels[w.netns(serverPID)]
	k.change(func() { k.sockets, k.sockstat = inTimeWait(k.sockets), map[string]int{"inuse": 0, "tw": 90} })
	var l *model.Listener
	for range 60 {
		l = w.only(w.second())
	}
	require.Equal(t, 90, l.Process.Busiest.TimeWait)
	require.False(t, l.Process.Busiest.Unowned)
	require.Equal(t, model.CauseEphemeralPorts, l.Verdict.Cause)
}

// A process that has used nearly all local ports towards one peer is warned of in
// the interval of one scan, and so is one that has used them all. (The outgoing
// connections were counted in the second of the two readings only, and what is
// high in one is no finding.)
func TestEphemeralPortsWithinAnInterval(t *testing.T) {
	nettest.Root(t)
	for _, used := range []int{95, 100} {
		t.Run(fmt.Sprint(used), func(t *testing.T) {
			l := newLab(t, func(o *Options) { o.All, o.Ports = false, []uint16{8080} })
			l.Sysctl(t, "net.ipv4.ip_local_port_range", "20000 20099")
			l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 10})
			peer := netip.MustParseAddrPort("127.0.0.1:5432")
			l.listen(t, nettest.ListenOptions{Address: peer.String(), Backlog: 200})
			l.queue(t, peer, used)
			require.NoError(t, l.Observe(context.Background(), 100*time.Millisecond))
			got := only(t, l.Snapshot())
			require.NotNil(t, got.Process)
			require.NotNil(t, got.Process.Busiest)
			require.Equal(t, model.Destination{Address: peer, Ports: used}, *got.Process.Busiest)
			require.Equal(t, model.StatusWarning, got.Verdict.Status, "%+v", got.Verdict)
			require.Equal(t, model.CauseEphemeralPorts, got.Verdict.Cause)
		})
	}
}
