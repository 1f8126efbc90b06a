package schedule

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// thousands is a real server with thousands of connections, driven by hand.
type thousands struct {
	*lab
	server *nettest.Listener
	truth  *sockdiag.Conn
	list   []exchange
}

// exchange is one connection, both ends of it.
type exchange struct {
	client, server *net.TCPConn
	asked          bool
}

func (s *thousands) connect(t *testing.T, n int) {
	t.Helper()
	s.Do(func() {
		clients := nettest.Queue(t, s.server.Addr, n)
		for i, accepted := range s.server.Accept(t, n) { // in the order in which they came
			s.list = append(s.list, exchange{client: clients[i].(*net.TCPConn), server: accepted.(*net.TCPConn)})
		}
	})
}

// churn has some ask or be answered, and as many others come as go.
func (s *thousands) churn(t *testing.T, turns, others int, share float64) {
	t.Helper()
	for range turns {
		e := &s.list[rand.IntN(len(s.list))]
		if asks := rand.Float64() < share; asks != e.asked {
			if e.asked = asks; asks {
				say(t, e.client, e.server)
			} else {
				say(t, e.server, e.client)
				acknowledge(t, e.client)
			}
		}
	}
	for range others {
		at, last := rand.IntN(len(s.list)), len(s.list)-1
		require.NoError(t, s.list[at].client.Close())
		require.NoError(t, s.list[at].server.Close())
		s.list[at] = s.list[last]
		s.list = s.list[:last]
	}
	s.connect(t, others)
}

// acknowledge sends the ACK that the kernel would delay for up to 40 ms (TCP_DELACK_MIN), in
// which the answer is being sent.
func acknowledge(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) }))
	require.NoError(t, err)
}

// counted is what a walk of its own counts.
func (s *thousands) counted(t *testing.T) *model.Connections {
	t.Helper()
	var f connections.Found
	var ports sockdiag.Ports
	ports.Add(s.server.Addr.Port())
	s.truth.OnRestart = func() { f = connections.Found{} }
	wanted := sockdiag.Wanted{Ports: &ports, States: connections.States(false), Info: true}
	require.NoError(t, s.truth.Walk(wanted, func(found *sockdiag.Socket) error {
		f.Add(found)
		return nil
	}))
	return f.Behind(nil)
}

// The kernel's own connections, hundreds of times: the stated error holds against a walk of
// all, while requests begin and end and clients come and go.
func TestLongSampledPhases(t *testing.T) {
	const pairs = 2*4096 + 300
	readings := proof.Size(1000, 500)
	var files unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
	if files.Cur < 2*pairs+1000 {
		t.Skipf("takes %d open files, the limit is %d", 2*pairs+1000, files.Cur)
	}
	s := &thousands{lab: newLab(t, nil)}
	s.server = s.listen(t, nettest.ListenOptions{Backlog: 200})
	s.Do(func() {
		var err error
		s.truth, err = sockdiag.Dial()
		require.NoError(t, err)
	})
	defer s.truth.Close()
	for len(s.list) < pairs {
		s.connect(t, min(100, pairs-len(s.list)))
	}
	s.Scheduler = s.sampler(t, func(o *Options) {
		watching(s.server.Addr.Port())(o)
		o.Limits = watchlist.Overrides{MaxConnections: watchlist.ByHand(new(100_000), "flag"), MaxThreads: watchlist.ByHand(new(100_000), "flag")}
	})
	s.looping.Store(true)
	s.faults.walked = func(sockdiag.Wanted) { // as among a million sockets
		for begun := time.Now(); time.Since(begun) < 200*time.Millisecond; {
		}
	}
	s.scan(t)
	r := s.Scheduler.list.Load()
	place := r.Namespaces[0]
	id := model.ListenerID{NetNS: place.ID, Address: netip.AddrPortFrom(s.server.Addr.Addr().Unmap(), s.server.Addr.Port())}
	sampled, held, largest, stated, moved := 0, 0, 0, 0, 0
	for i := range readings {
		s.churn(t, 400, rand.IntN(4), float64(i%50)/50)
		time.Sleep(12 * time.Millisecond) // a jiffy later
		before := s.counted(t)
		_, err := s.readConnections(r, place)
		require.NoError(t, err)
		list := s.facts.Connections(id)
		last, ok := list.Last()
		require.True(t, ok)
		got, truth := last.Value.Behind(nil), s.counted(t)
		off := distance(got.Accepted, truth.Accepted)
		for p := range got.Phases {
			off = max(off, distance(got.Phases[p], truth.Phases[p]))
		}
		require.Equal(t, len(s.list), truth.Accepted)
		if truth.Phases != before.Phases { // while it was read: the machine is busy
			moved++
			continue
		}
		if got.Subset == 0 {
			require.Zero(t, off, "each is counted")
			continue
		}
		sampled++
		if largest, stated = max(largest, off), max(stated, got.Error); off <= got.Error {
			held++
		}
	}
	t.Logf("%d of %d readings were of a random part of %d connections; the error, at most %d, held in %d of them; the largest was %d",
		sampled, readings-moved, pairs, stated, held, largest)
	require.Less(t, moved, readings/2)
	require.Greater(t, sampled, (readings-moved)*9/10)
	require.GreaterOrEqual(t, held, sampled*99/100)
	require.Positive(t, largest, "it is an estimate")
}
