package handshake

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/recall"
	"github.com/tcpdiag/tcpdiag/internal/handshake/room"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Memory under a flood of a million addresses.
func TestMemoryIsBounded(t *testing.T) {
	before := nettest.Heap()
	tracker := NewTracker(Options{})
	tracker.SetPorts([]uint16{port})
	s := packet.Segment{Link: packet.Link{Incoming: true}, Dst: packet.Addr{15: 1}, DstPort: port, Flags: packet.FlagSYN, SrcPort: 1}
	for i := range uint32(1_000_000) {
		binary.BigEndian.PutUint32(s.Src[:], i)
		tracker.Observe(time.Second+time.Duration(i)*time.Microsecond, &s)
	}
	full := nettest.Heap()
	require.Less(t, int64(full)-int64(before), int64(12<<20))
	e := tracker.Report()[0]
	require.Equal(t, 100_000, e.Waiting)
	require.InEpsilon(t, 900_000, e.Untracked, .01)

	tracker.Advance(time.Hour)
	require.Less(t, int64(nettest.Heap())-int64(before), int64(3<<20), "and it is given back")
	runtime.KeepAlive(tracker)
}

// A flood that a full queue turns away: its clients are open for four seconds, and
// remembered for longer.
func TestMemoryOfThoseTurnedAway(t *testing.T) {
	before := nettest.Heap()
	s := newScript(t, Options{})
	highest := before
	for i := range uint32(400_000) { // 40,000 a second
		c := s.client("10.0.0.1:40000", i)
		c.from = netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), 40_000)
		c.syn()
		if s.at += 25 * time.Microsecond; i%20_000 == 0 {
			highest = max(highest, nettest.Heap())
		}
	}
	require.Equal(t, recall.MaxEnded, s.tracker.ended.Len())
	t.Logf("%.1f MiB", float64(highest-before)/(1<<20))
	require.Less(t, highest-before, uint64(12<<20))
	runtime.KeepAlive(s.tracker)
}

// A tracker that follows ports without clients takes next to nothing, as an
// agent has one for each network namespace.
func TestIdleTrackerIsSmall(t *testing.T) {
	const trackers = 100
	idle, shared := make([]*Tracker, trackers), room.Alone()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range idle {
		idle[i] = NewTracker(Options{Shared: shared})
		idle[i].SetPorts([]uint16{8080})
		idle[i].Advance(time.Hour)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/trackers, uint64(1024))
	runtime.KeepAlive(idle)
}

// Who has many network namespaces, as each user may, and floods each of them has no more memory than who floods one,
// and the clients of others are followed all the same.
func TestFloodsOfManyNamespaces(t *testing.T) {
	before := nettest.Heap()
	shared := room.Alone()
	open := func() *Tracker {
		tracker := NewTracker(Options{Shared: shared, Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found { return kernel.Found{} }})
		tracker.SetPorts([]uint16{1, 2})
		return tracker
	}
	client := uint32(0)
	syns := func(to *Tracker, at time.Duration, n int, port uint16) {
		s := packet.Segment{Link: packet.Link{Incoming: true}, Dst: packet.Addr{15: 1}, DstPort: port, Flags: packet.FlagSYN, SrcPort: 1}
		for range n {
			client++
			binary.BigEndian.PutUint32(s.Src[:], client)
			to.Observe(at, &s)
		}
	}
	var floods [40]*Tracker
	sent := 0
	for i := range floods {
		floods[i] = open()
		syns(floods[i], time.Second, 30_000, 1)
		syns(floods[i], time.Second, 300, 2)
		sent += 30_300
	}
	honest := open()
	syns(honest, time.Second, 1000, 1)
	for _, f := range floods {
		f.Advance(2 * time.Second)
	}
	syns(honest, 2*time.Second, 3000, 1)
	e := honest.Report()[0]
	require.GreaterOrEqual(t, e.Waiting, 3500)
	require.InEpsilon(t, 4000-e.Waiting, e.Untracked, .1, "the first ones found the least alone")
	counted := uint64(0)
	for _, f := range floods {
		for _, e := range f.Report() {
			counted += uint64(e.Open()) + e.Untracked + sumOf(e.Clients)
			if e.Addr.Port() == 2 {
				require.Positive(t, e.Waiting)
			}
		}
	}
	require.InEpsilon(t, sent, counted, .02)
	grown := nettest.Heap() - before
	t.Logf("%.1f MiB", float64(grown)/(1<<20))
	require.Less(t, grown, uint64(40<<20))
	for _, f := range floods {
		f.Close()
	}
	syns(honest, 2*time.Second, 200_000, 1)
	require.Equal(t, defaultMaxOpen, honest.Open())
	runtime.KeepAlive(floods)
}
