package accounts

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// Clients of one address that use its few ports again and again, at a server that has room for a third of them: each
// connection is a client of its own.
func TestFullShapesOfFewPorts(t *testing.T) {
	proof.Skip(t)
	const (
		every = 17 * time.Millisecond
		long  = 10 * time.Second
	)
	server, crowdNS := nettest.Namespace(t), nettest.Namespace(t)
	addr, _ := nettest.Veth(t, server, crowdNS)
	crowdNS.Sysctl(t, "net.ipv4.tcp_tw_reuse", "1")
	crowdNS.Sysctl(t, "net.ipv4.tcp_orphan_retries", "1")
	_, to, stop := serve(t, server, demo.ServerOptions{
		Address: netip.AddrPortFrom(addr, nextPort()).String(), MaxThreads: 2, MaxConnections: 6, AcceptCount: 4, ServiceTime: 100 * time.Millisecond,
	})
	defer stop()
	opened := passiveOpens(t, server)
	tap := openTap(t, server, nil, to.Port())
	before := opened()
	c := newCrowd(t, to, patience{connect: 1500 * time.Millisecond, read: 1500 * time.Millisecond})
	c.few = 250
	crowdNS.Do(func() {
		for until := time.Now().Add(long); time.Now().Before(until); {
			c.begin(false)
			for next := time.Now().Add(every); time.Now().Before(next); {
				c.step(time.Until(next))
			}
		}
	})
	for c.step(10 * time.Millisecond) {
	}
	e, lost := look(t, tap)
	for until := time.Now().Add(settleMost); time.Now().Before(until) && e.Open()+e.Inside+e.Left > 0; e, lost = look(t, tap) {
		time.Sleep(100 * time.Millisecond)
	}
	var want [numEnds]uint64
	for _, k := range c.clients {
		want[k.how]++
	}
	n := uint64(len(c.clients))
	t.Logf("%d clients, %d ports tried: %v; tap %v, let in %d, late %d, %+v, lost %d; sockets %d", n, c.tried, want, named(&e), e.LetIn, e.LetInLate, e.Answers, lost, opened()-before)
	off := float64(max(2, n/200))
	require.Greater(t, n, uint64(c.few), "ports are used again")
	require.InDelta(t, want[answered], e.Answers.Answered, off)
	require.InDelta(t, n-want[answered], e.Failed()+e.Answers.Unanswered, off)
	require.InDelta(t, opened()-before, e.LetIn+e.LetInLate, off)
	require.LessOrEqual(t, e.LetIn+e.LetInLate, opened()-before)
}
