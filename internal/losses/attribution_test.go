package losses

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func listenerID(port uint16) model.ListenerID {
	return model.ListenerID{NetNS: 4026531840, Address: netip.AddrPortFrom(netip.IPv6Unspecified(), port)}
}

func socket(port uint16, inode, drops uint32) SocketDrops {
	return SocketDrops{ID: listenerID(port), Inode: inode, Drops: drops, Watched: true}
}

func unwatched(port uint16, inode, drops uint32) SocketDrops {
	s := socket(port, inode, drops)
	s.Watched = false
	return s
}

// overflows are counters of which every drop was at a full accept queue.
func overflows(n uint64) NamespaceCounts {
	return NamespaceCounts{ListenDrops: n, ListenOverflows: n}
}

func TestAttributionTick(t *testing.T) {
	type tick struct {
		now          NamespaceCounts
		sockets      []SocketDrops
		want         []Attributed
		unattributed uint64
	}
	one := func(port uint16, kind model.Packet, n uint64) Attributed {
		return Attributed{ID: listenerID(port), Packet: kind, Packets: n}
	}
	estimated := func(port uint16, n uint64) Attributed {
		return Attributed{ID: listenerID(port), Packet: model.PacketUnknown, Packets: n, Estimated: true}
	}
	const syn, ack, unknown = model.PacketSYN, model.PacketACK, model.PacketUnknown
	start := []SocketDrops{socket(8080, 1, 500), socket(8443, 2, 7), unwatched(22, 3, 0)}

	for name, ticks := range map[string][]tick{
		"nothing happens": {{now: overflows(100), sockets: start}},
		"SYNs at one full listener: its history from before the start does not count": {{
			now: overflows(110), sockets: []SocketDrops{socket(8080, 1, 510), start[1], start[2]},
			want: []Attributed{one(8080, syn, 10)},
		}},
		"final ACKs add two": {{
			now: overflows(110), sockets: []SocketDrops{socket(8080, 1, 520), start[1], start[2]},
			want: []Attributed{one(8080, ack, 10)},
		}},
		"SYNs and final ACKs": {{
			now: overflows(110), sockets: []SocketDrops{socket(8080, 1, 513), start[1], start[2]},
			want: []Attributed{one(8080, syn, 7), one(8080, ack, 3)},
		}},
		"a socket that counts more than two a drop": {{
			now: overflows(110), sockets: []SocketDrops{socket(8080, 1, 600), start[1], start[2]},
			want: []Attributed{one(8080, ack, 10)},
		}},
		"a drop while the sockets were read is not called an ACK": {{
			now:     NamespaceCounts{ListenDrops: 110, ListenOverflows: 110, Torn: true},
			sockets: []SocketDrops{socket(8080, 1, 513), start[1], start[2]},
			want:    []Attributed{one(8080, syn, 7), one(8080, unknown, 3)},
		}},
		"ACKs with a cookie cannot be told from SYNs": {{
			now:     NamespaceCounts{ListenDrops: 110, ListenOverflows: 110, SyncookiesRecv: 4},
			sockets: []SocketDrops{socket(8080, 1, 513), start[1], start[2]},
			want:    []Attributed{one(8080, syn, 3), one(8080, ack, 3), one(8080, unknown, 4)},
		}},
		"SYN-queue drops beside overflows": {{
			now:     NamespaceCounts{ListenDrops: 110, ListenOverflows: 104, ReqQFullDrop: 6},
			sockets: []SocketDrops{socket(8080, 1, 511), start[1], start[2]},
			want: []Attributed{
				{ID: listenerID(8080), Packet: syn, Packets: 6, SynQueue: true},
				one(8080, syn, 3), one(8080, ack, 1),
			},
		}},
		"the drops are the other connector's": {{
			now: overflows(105), sockets: []SocketDrops{start[0], socket(8443, 2, 12), start[2]},
			want: []Attributed{one(8443, syn, 5)},
		}},
		"two drop: in proportion, by largest remainder": {{
			now: overflows(110), sockets: []SocketDrops{socket(8080, 1, 509), socket(8443, 2, 12), start[2]}, // 9 and 5 for 10
			want: []Attributed{estimated(8080, 6), estimated(8443, 4)},
		}},
		"an unwatched listener's share is unattributed": {{
			now: overflows(110), sockets: []SocketDrops{socket(8080, 1, 505), start[1], unwatched(22, 3, 5)},
			want: []Attributed{estimated(8080, 5)}, unattributed: 5,
		}},
		"capped at the increment": {{
			now: overflows(110), sockets: []SocketDrops{socket(8080, 1, 503), start[1], start[2]},
			want: []Attributed{one(8080, unknown, 3)}, unattributed: 7,
		}},
		"a later listener counts whole": {{
			now: overflows(103), sockets: append([]SocketDrops{socket(9090, 9, 3)}, start...),
			want: []Attributed{one(9090, syn, 3)},
		}},
		"a restarted listener counts whole": {{
			now: overflows(103), sockets: []SocketDrops{socket(8080, 77, 3), start[1], start[2]},
			want: []Attributed{one(8080, syn, 3)},
		}},
		"the same inode, another socket": {{
			now: overflows(103), sockets: []SocketDrops{socket(8080, 1, 3), start[1], start[2]},
			want: []Attributed{one(8080, syn, 3)},
		}},
		"a listener that vanished takes its count along": {{
			now: overflows(103), sockets: start[1:], unattributed: 3,
		}},
		"a socket ahead of its namespace is carried one tick": {
			{now: overflows(100), sockets: []SocketDrops{socket(8080, 1, 502), start[1], start[2]}},
			{
				now: overflows(102), sockets: []SocketDrops{socket(8080, 1, 502), start[1], start[2]},
				want: []Attributed{one(8080, unknown, 2)},
			},
		},
		"but not two": {
			{now: overflows(100), sockets: []SocketDrops{socket(8080, 1, 502), start[1], start[2]}},
			{now: overflows(100), sockets: []SocketDrops{socket(8080, 1, 502), start[1], start[2]}},
			{now: overflows(102), sockets: []SocketDrops{socket(8080, 1, 502), start[1], start[2]}, unattributed: 2},
		},
		"carried for a listener that closed meanwhile": {
			{now: overflows(100), sockets: []SocketDrops{socket(8080, 1, 502), start[1], start[2]}},
			{now: overflows(102), sockets: start[1:], want: []Attributed{one(8080, unknown, 2)}},
		},
		"the over-count of final ACKs draws nothing away in the next tick": {
			{
				now: overflows(110), sockets: []SocketDrops{socket(8080, 1, 520), start[1], start[2]},
				want: []Attributed{one(8080, ack, 10)},
			},
			{
				now: overflows(115), sockets: []SocketDrops{socket(8080, 1, 520), socket(8443, 2, 12), start[2]},
				want: []Attributed{estimated(8443, 5)},
			},
		},
		"a listener left out of one dump": {
			{now: overflows(100), sockets: start[1:]},
			{
				now: overflows(101), sockets: []SocketDrops{socket(8080, 1, 501), start[1], start[2]},
				want: []Attributed{one(8080, syn, 1)},
			},
		},
		"another namespace under the same number": {{
			now: overflows(4), sockets: []SocketDrops{socket(8080, 900, 4)},
			want: []Attributed{one(8080, syn, 4)},
		}},
		"SO_REUSEPORT members are one listener": {{
			now: overflows(106), sockets: append([]SocketDrops{socket(8080, 4, 4), socket(8080, 1, 502)}, start[1:]...),
			want: []Attributed{one(8080, syn, 6)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAttribution(overflows(100), start)
			for i, tick := range ticks {
				got, unattributed := a.Tick(tick.now, tick.sockets, nil)
				require.ElementsMatch(t, tick.want, got, "tick %d", i)
				require.Equal(t, tick.unattributed, unattributed, "tick %d", i)
			}
		})
	}
}

func TestAttributionU32Wrap(t *testing.T) {
	a := NewAttribution(overflows(0), []SocketDrops{socket(8080, 1, 1<<32-5)})
	got, unattributed := a.Tick(overflows(12), []SocketDrops{socket(8080, 1, 7)}, nil)
	require.Zero(t, unattributed)
	require.Equal(t, []Attributed{{ID: listenerID(8080), Packet: model.PacketSYN, Packets: 12}}, got)
}

func TestAttributionAppendsToDst(t *testing.T) {
	kept := Attributed{ID: listenerID(1), Packets: 99}
	a := NewAttribution(overflows(0), nil)
	got, _ := a.Tick(overflows(1), []SocketDrops{socket(8080, 1, 1)}, []Attributed{kept})
	require.Len(t, got, 2)
	require.Equal(t, kept, got[0])
}

// Seven packets over weights 3, 3, 3 and 1 are 2.1 each and 0.7: the largest
// remainder takes the seventh.
func TestAllotLargestRemainder(t *testing.T) {
	shares := []share{{id: listenerID(1), fresh: 3}, {id: listenerID(2), fresh: 3}, {id: listenerID(3), fresh: 3}, {id: listenerID(4), fresh: 1}}
	left := allot(shares, 7, func(s *share) uint64 { return s.fresh })
	require.Zero(t, left)
	require.Equal(t, []uint64{2, 2, 2, 1}, []uint64{shares[0].packets, shares[1].packets, shares[2].packets, shares[3].packets})
}

// A drop between the sums of the two counters shows up in one reading as a
// drop without an overflow, in the next as an overflow without a drop. It must
// not shift the classification for good.
func TestAttributionTornReading(t *testing.T) {
	a := NewAttribution(NamespaceCounts{}, []SocketDrops{socket(8080, 1, 0)})
	var synQueue uint64
	for _, step := range []struct {
		drops, overflows uint64
	}{{10, 9}, {20, 20}, {30, 29}, {40, 40}} {
		got, _ := a.Tick(NamespaceCounts{ListenDrops: step.drops, ListenOverflows: step.overflows},
			[]SocketDrops{socket(8080, 1, uint32(step.drops))}, nil)
		for _, d := range got {
			if d.SynQueue {
				synQueue += d.Packets
			}
		}
	}
	require.LessOrEqual(t, synQueue, uint64(1))
}
