package namespace

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// crowdOf are listeners of a user at addresses of the loopback.
func crowdOf(n int, user uint32) (out []sockdiag.Listener) {
	for i := range n {
		l := listening(uint16(1024+i%60_000), user*1_000_000+uint32(i)+1)
		l.Local, l.UID = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(user), byte(i / 60_000), 1}), l.Local.Port()), user
		out = append(out, l)
	}
	return out
}

// A process can have a million listeners. Of too many an equal share of each user's is read, and what is watched or asked for is.
func TestCrowdOfListeners(t *testing.T) {
	honest := listening(8080, 1)
	honest.Local, honest.UID = netip.MustParseAddrPort("10.0.0.1:8080"), 99
	late, asked := honest, honest
	late.Local, late.Inode = netip.MustParseAddrPort("10.0.0.1:8081"), 2
	asked.Local, asked.Inode, asked.UID = netip.MustParseAddrPort("10.0.0.1:8082"), 3, 1
	s := &script{listeners: []sockdiag.Listener{honest}}
	n, now := scripted(t, s)
	n.Expect(func(id model.ListenerID) bool { return id.Address.Port() == 8082 })
	s.listeners = append(append(crowdOf(50_000, 1), crowdOf(50_000, 2)...), crowdOf(100, 3)...)
	s.listeners = append(s.listeners, honest, asked, late)
	var users map[uint32]int
	var ports map[uint16]bool
	for i := range 2 { // the first one counts them
		list, err := n.List(now.Add(time.Duration(i+1) * time.Second))
		require.NoError(t, err)
		users, ports = make(map[uint32]int), make(map[uint16]bool)
		for _, l := range list {
			users[l.UID]++
			ports[l.Local.Port()] = ports[l.Local.Port()] || l.Local.Addr() == honest.Local.Addr()
		}
		require.LessOrEqual(t, len(list), mostListeners+5)
		require.Equal(t, len(s.listeners), len(list)+n.Unread())
		require.True(t, ports[8080], "what is watched")
		require.True(t, ports[8082], "and what is asked for")
	}
	require.True(t, ports[8081], "of an honest user each")
	require.Equal(t, 100, users[3])
	require.InDelta(t, mostListeners/2, users[1], 100)
	require.InDelta(t, mostListeners/2, users[2], 100)
	require.False(t, n.Readings()[0].Closed)

	n.Expect(func(model.ListenerID) bool { return true }) // --all
	list, err := n.List(now.Add(3 * time.Second))
	require.NoError(t, err)
	require.LessOrEqual(t, len(list), mostListeners+mostAsked+5)

	s.listeners = []sockdiag.Listener{honest, late}
	for i := range 2 {
		list, err := n.List(now.Add(time.Duration(i+4) * time.Second))
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Zero(t, n.Unread())
	}
}

// The namespaces share what is read, and nothing is kept of one that is left.
func TestCrowdsShare(t *testing.T) {
	var c crowds
	c.note(1, 100)
	require.Equal(t, mostListeners-100, c.most(2))
	c.note(2, 1_000_000)
	require.Equal(t, 100, min(100, c.most(1)))
	require.Equal(t, mostListeners-100, c.most(2))
	for id := range uint64(10) {
		c.note(10+id, 1_000_000)
	}
	require.GreaterOrEqual(t, c.most(1), 100)
	require.Equal(t, (mostListeners-100)/11, c.most(2))
	for id := range uint64(100_000) {
		c.note(100+id, 1)
		c.note(100+id, 0)
	}
	require.Len(t, c.of, 12)
	require.Equal(t, 11_000_100, c.all)
	for id := range uint64(1000) {
		c.note(100+id, 1_000_000)
	}
	require.Equal(t, leastListeners, c.most(3))
}
