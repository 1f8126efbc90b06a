package handshake

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// crowd is a tracker with room for a thousand attempts, and clients that send a SYN each.
type crowd struct {
	tracker *Tracker
	at      time.Duration
	clients uint32
}

func newCrowd() *crowd {
	c := &crowd{tracker: NewTracker(Options{MaxOpen: 1000}), at: time.Second}
	c.tracker.SetPorts([]uint16{1, 2, 3})
	return c
}

func (c *crowd) syns(n int, to netip.AddrPort) {
	s := packet.Segment{Link: packet.Link{Incoming: true}, Dst: to.Addr().As16(), DstPort: to.Port(), SrcPort: 1, Flags: packet.FlagSYN}
	for range n {
		c.clients++
		binary.BigEndian.PutUint32(s.Src[:], c.clients)
		c.at += time.Microsecond
		c.tracker.Observe(c.at, &s)
	}
}

func (c *crowd) report(t *testing.T, of netip.AddrPort) outcome.Endpoint {
	t.Helper()
	for _, e := range c.tracker.Report() {
		if e.Addr == of {
			return e
		}
	}
	t.Fatalf("%v has had no client", of)
	return outcome.Endpoint{}
}

// A listener's flood turns out no client of another listener, be it that it comes by many addresses or that both have
// the same port, and whoever came first.
func TestFloodOfAnotherListener(t *testing.T) {
	at := netip.MustParseAddrPort
	for name, tt := range map[string]struct {
		flooded []netip.AddrPort
		calm    netip.AddrPort
	}{
		"another port":                   {[]netip.AddrPort{at("10.0.0.1:1")}, at("10.0.0.1:2")},
		"the same port":                  {[]netip.AddrPort{at("10.0.0.1:1")}, at("10.0.0.2:1")},
		"another port at many addresses": {[]netip.AddrPort{at("127.0.0.1:1"), at("127.0.0.2:1"), at("127.0.0.3:1"), at("127.0.0.4:1")}, at("10.0.0.1:2")},
		"two ports":                      {[]netip.AddrPort{at("10.0.0.1:1"), at("10.0.0.1:3")}, at("10.0.0.1:2")},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd()
			flood := func() {
				for range 1000 {
					for _, to := range tt.flooded {
						c.syns(5, to)
					}
				}
			}
			c.syns(100, tt.calm)
			flood()
			c.syns(100, tt.calm)
			flood()
			require.Equal(t, 1000, c.tracker.Open())
			calm := c.report(t, tt.calm)
			require.Equal(t, 200, calm.Waiting)
			require.Zero(t, calm.Untracked)
			c.tracker.Advance(time.Hour)
			require.EqualValues(t, 200, sumOf(c.report(t, tt.calm).Clients))
			for _, to := range tt.flooded {
				e := c.report(t, to)
				require.InEpsilon(t, 10_000, sumOf(e.Clients)+e.Untracked, .02, "who is turned out is counted as one for which there was no room")
			}
			require.Zero(t, c.tracker.table.open)
			require.Zero(t, c.tracker.Open())
		})
	}
}

// Two floods share the room, and neither takes from the other in turns.
func TestTwoFloodsShareTheRoom(t *testing.T) {
	c := newCrowd()
	one, other := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.1:2")
	c.syns(5000, one)
	c.syns(5000, other)
	c.syns(5000, one)
	require.Equal(t, []int{500, 500}, []int{c.report(t, one).Waiting, c.report(t, other).Waiting})
}

// sketched is by how much those are off at most, of some hundreds, who are counted by a sketch with a seed of its own.
const sketched = 5

// Who is turned out and is heard of again is one client.
func TestTurnedOutForAnother(t *testing.T) {
	c := newCrowd()
	one := netip.MustParseAddrPort("10.0.0.1:1")
	c.syns(1000, one)
	c.syns(300, netip.MustParseAddrPort("10.0.0.1:2"))
	e := c.report(t, one)
	require.Equal(t, 700, e.Waiting)
	require.InDelta(t, 300, e.Untracked, sketched)
	c.at += 2 * time.Second
	c.clients = 0
	c.syns(1000, one)
	c.tracker.Advance(time.Hour)
	e = c.report(t, one)
	require.InDelta(t, 1000, sumOf(e.Clients)+e.Untracked, sketched)
}

// Making room takes no memory.
func TestMakingRoomAllocatesNothing(t *testing.T) {
	c := newCrowd()
	c.syns(5000, netip.MustParseAddrPort("10.0.0.1:1"))
	to := netip.MustParseAddrPort("10.0.0.1:2")
	c.syns(1, to)
	require.Zero(t, testing.AllocsPerRun(300, func() { c.syns(1, to) }))
	require.Greater(t, c.report(t, to).Waiting, 300)
}

// Whoever is on the same machine can send a SYN to each of 127.0.0.0/8. Those that listen on an address still have their
// clients counted by themselves, and the others' are those of who listens on all.
func TestAddressesOfStrangers(t *testing.T) {
	c := newCrowd()
	at := netip.MustParseAddrPort
	for i := range 5000 {
		c.syns(1, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)}), 1))
	}
	c.tracker.Advance(time.Hour)
	c.at = time.Hour
	c.tracker.SetListened([]netip.AddrPort{at("0.0.0.0:1"), at("10.0.0.1:1"), at("10.0.0.1:2"), at("10.0.0.2:2"), at("[fd00::1]:2")})
	for n, to := range []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:2", "[fd00::1]:2"} {
		c.syns(n+1, at(to))
	}
	for n, to := range []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.2:2", "[fd00::1]:2"} {
		require.Equal(t, n+1, c.report(t, at(to)).Waiting, to)
	}
	rest := c.report(t, at("0.0.0.0:1"))
	require.InEpsilon(t, 5000, sumOf(rest.Clients)+rest.Untracked, .01)
	require.LessOrEqual(t, c.tracker.endpoints.Len(), 10)
}

// A client that came before its address was listened on is followed to its end.
func TestListenedOnLater(t *testing.T) {
	s := newScript(t, Options{})
	for i := range 10 {
		s.observe(packet.Segment{
			Link: packet.Link{Incoming: true, Index: 2}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(), Flags: packet.FlagSYN, Seq: 1,
			Dst: netip.AddrFrom4([4]byte{127, 0, 0, byte(i + 1)}).As16(), DstPort: port,
		})
	}
	s.syn()
	s.tracker.SetListened([]netip.AddrPort{server})
	s.wait(1)
	s.syn()
	s.synAck()
	other := s.client("10.0.0.8:40000", 7)
	other.syn()
	other.synAck()
	for end := s.at + 5*time.Minute; s.at < end; s.at += tick {
		s.tracker.Unread().CalmTo = s.at
		s.tracker.Advance(s.at)
	}
	for _, e := range s.tracker.Report() {
		switch e.Addr {
		case server:
			require.Equal(t, just(outcome.Connected), e.Clients)
		case netip.MustParseAddrPort("0.0.0.0:8080"):
			require.EqualValues(t, 1, e.Clients[outcome.Delayed])
		}
	}
}

// However many addresses of one port are listened on one after the other, with a client each that stays, nothing is kept of those
// that no longer are, and each is reported once more.
func TestListenedByChurn(t *testing.T) {
	c, ended, begun := newCrowd(), 0, 0
	for i := range 20_000 {
		to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 1)
		c.tracker.SetListened([]netip.AddrPort{to})
		c.syns(1, to)
		for _, e := range c.tracker.Report() {
			if e.Ended {
				ended++
				begun += e.Open()
			}
		}
		require.LessOrEqual(t, c.tracker.endpoints.Len(), 10)
		require.LessOrEqual(t, c.tracker.Open(), 10)
	}
	require.Equal(t, 20_000-c.tracker.endpoints.Len(), ended)
	require.Zero(t, begun)
	require.LessOrEqual(t, len(c.tracker.endpoints.list), 10)
}
