package handshake

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/recall"
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
	idle := make([]*Tracker, trackers)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range idle {
		idle[i] = NewTracker(Options{})
		idle[i].SetPorts([]uint16{8080})
		idle[i].Advance(time.Hour)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/trackers, uint64(1024))
	runtime.KeepAlive(idle)
}
