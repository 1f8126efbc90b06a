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

// Who is turned out and is heard of again is one client.
func TestTurnedOutForAnother(t *testing.T) {
	c := newCrowd()
	one := netip.MustParseAddrPort("10.0.0.1:1")
	c.syns(1000, one)
	c.syns(300, netip.MustParseAddrPort("10.0.0.1:2"))
	e := c.report(t, one)
	require.Equal(t, 700, e.Waiting)
	require.EqualValues(t, 300, e.Untracked)
	c.at += 2 * time.Second
	c.clients = 0
	c.syns(1000, one)
	c.tracker.Advance(time.Hour)
	e = c.report(t, one)
	require.EqualValues(t, 1000, sumOf(e.Clients)+e.Untracked)
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
