package losses

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// kernel is a model of what the kernel counts: one namespace, its listeners,
// and every way in which their counters move.
type kernel struct {
	counts    NamespaceCounts
	listeners []SocketDrops
	nextInode uint32
	total     uint64 // drops since the start, across resets of the namespace

	truth map[model.ListenerID]uint64 // drops by listener
}

func newKernel(first uint32, history uint64) *kernel {
	k := &kernel{nextInode: 100, truth: map[model.ListenerID]uint64{}}
	k.counts = NamespaceCounts{ListenDrops: history, ListenOverflows: history / 2}
	for port := range uint16(4) {
		k.listen(8080+port, port < 3)
		k.listeners[port].Drops = first // near the wrap, or not
	}
	return k
}

func (k *kernel) listen(port uint16, watched bool) {
	k.nextInode++
	k.listeners = append(k.listeners, SocketDrops{ID: listenerID(port), Inode: k.nextInode, Watched: watched})
}

func (k *kernel) drop(i int, overflow bool, twice bool) {
	if len(k.listeners) == 0 {
		return
	}
	l := &k.listeners[i%len(k.listeners)]
	k.counts.ListenDrops++
	k.total++
	k.truth[l.ID]++
	if overflow {
		k.counts.ListenOverflows++
	}
	l.Drops++
	if twice {
		l.Drops++
	}
}

// step lets one thing happen.
func (k *kernel) step(op, arg byte) {
	i := int(arg)
	switch op % 16 {
	case 0, 1, 2, 3, 4, 5: // SYN at a full accept queue
		k.drop(i, true, false)
	case 6, 7, 8: // final ACK
		k.drop(i, true, true)
	case 9: // ACK with a cookie
		k.counts.SyncookiesRecv++
		k.drop(i, true, false)
	case 10: // SYN at a full SYN queue
		k.counts.ReqQFullDrop++
		k.drop(i, false, false)
	case 11: // duplicate SYN, RST to a half-open connection
		if len(k.listeners) > 0 {
			k.listeners[i%len(k.listeners)].Drops++
		}
	case 12: // a cookie that was accepted
		k.counts.SyncookiesRecv++
	case 13: // restart
		if len(k.listeners) > 0 {
			k.nextInode++
			l := &k.listeners[i%len(k.listeners)]
			l.Inode, l.Drops = k.nextInode, 0
		}
	case 14: // close, or listen again, or one more of a group
		if n := len(k.listeners); n > 0 && arg&1 == 0 {
			j := i % n
			k.listeners = append(k.listeners[:j:j], k.listeners[j+1:]...)
		} else if n < 8 {
			k.listen(8080+uint16(arg>>1)%6, arg&16 == 0)
		}
	case 15: // a storm
		for range i {
			k.drop(i, true, arg&1 == 0)
		}
	}
}

// replace makes it another namespace: all counters from zero.
func (k *kernel) replace() {
	k.counts = NamespaceCounts{}
	for i := range k.listeners {
		k.nextInode++
		k.listeners[i].Inode, k.listeners[i].Drops = k.nextInode, 0
	}
}

// observer ticks an Attribution and keeps the books.
type observer struct {
	*Attribution
	attributed, unattributed uint64
	by                       map[model.ListenerID]uint64
}

// tick reads the namespace, lets things happen, reads the sockets.
func (o *observer) tick(t *testing.T, k *kernel, between func()) {
	counts := k.counts
	between()
	got, rest := o.Tick(counts, append([]SocketDrops(nil), k.listeners...), nil)
	several := map[model.ListenerID]bool{}
	for _, d := range got {
		require.NotZero(t, d.Packets)
		several[d.ID] = true
		o.attributed += d.Packets
		o.by[d.ID] += d.Packets
	}
	for _, d := range got {
		if len(several) > 1 {
			require.True(t, d.Estimated, "several listeners dropped")
			require.Equal(t, model.PacketUnknown, d.Packet)
		}
	}
	o.unattributed += rest
}

// conserved runs the model on a tape of bytes: an operation and its argument
// each, every few of them a tick, with drops between the two readings.
func conserved(t *testing.T, tape []byte, first uint32, history uint64) {
	k := newKernel(first, history)
	o := &observer{Attribution: NewAttribution(k.counts, append([]SocketDrops(nil), k.listeners...)), by: map[model.ListenerID]uint64{}}
	next := func() (op, arg byte) {
		if len(tape) < 2 {
			tape = nil
			return 12, 0
		}
		op, arg = tape[0], tape[1]
		tape = tape[2:]
		return op, arg
	}
	for len(tape) > 0 {
		op, arg := next()
		switch {
		case op < 200: // else the agent reads
			k.step(op, arg)
		case op == 255 && arg > 250:
			// The old namespace's last drops were read before it went.
			o.tick(t, k, func() {})
			k.replace() // and the new one's are read before they pass the old
			o.tick(t, k, func() {})
		default:
			o.tick(t, k, func() {
				for range arg % 4 {
					k.step(next())
				}
			})
		}
	}
	o.tick(t, k, func() {}) // what was in flight
	require.Equal(t, k.total, o.attributed+o.unattributed, "attributed %d, unattributed %d", o.attributed, o.unattributed)
}

func TestAttributionConserves(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		tape := make([]byte, 2000)
		for i := range tape {
			tape[i] = byte(r.Uint32())
		}
		first := uint32(0)
		if seed%2 == 0 {
			first = -uint32(1 + r.UintN(300))
		}
		conserved(t, tape, first, r.Uint64N(1<<40))
	}
}

func FuzzAttributionConserves(f *testing.F) {
	f.Add([]byte{0, 0, 200, 0, 6, 1, 13, 1, 200, 2, 0, 0}, uint32(0), uint64(0))
	f.Add([]byte{15, 255, 200, 3, 15, 254, 14, 0, 255, 255, 0, 1}, uint32(1<<32-3), uint64(1<<63))
	f.Fuzz(func(t *testing.T, tape []byte, first uint32, history uint64) {
		if history > 1<<63 { // the kernel's counter would wrap in the test, which takes 500 years
			history >>= 1
		}
		conserved(t, tape, first, history)
	})
}

// FuzzAttributionHostile feeds counters that no kernel would have.
func FuzzAttributionHostile(f *testing.F) {
	f.Add(uint64(10), uint64(3), uint64(9), uint32(5), uint32(1))
	f.Add(uint64(1<<63), uint64(1<<63), uint64(0), uint32(1<<31), uint32(1<<32-1))
	f.Fuzz(func(t *testing.T, drops, over, cookies uint64, a, b uint32) {
		at := NewAttribution(NamespaceCounts{}, []SocketDrops{socket(1, 1, b), socket(2, 2, 0)})
		var last, sum uint64
		for i, now := range []NamespaceCounts{
			{ListenDrops: drops, ListenOverflows: over, SyncookiesRecv: cookies},
			{ListenDrops: drops / 2, ListenOverflows: over, SyncookiesRecv: cookies},
			{ListenDrops: drops, ListenOverflows: over / 3},
		} {
			got, rest := at.Tick(now, []SocketDrops{socket(1, 1, a+uint32(i)), socket(2, 2, b), unwatched(3, 3, a)}, nil)
			sum = rest
			for _, d := range got {
				sum += d.Packets
			}
			want := now.ListenDrops
			if want >= last {
				want -= last
			}
			require.Equal(t, want, sum)
			last = now.ListenDrops
		}
	})
}

// With one listener, no noise and no drop between the readings, the kinds are
// exact and nothing is estimated.
func TestAttributionKindsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	k := &kernel{truth: map[model.ListenerID]uint64{}}
	k.listen(8080, true)
	a := NewAttribution(k.counts, k.listeners)
	for range 500 {
		var want kinds
		for range r.IntN(50) {
			ack := r.IntN(3) == 0
			k.drop(0, true, ack)
			if ack {
				want.ack++
			} else {
				want.syn++
			}
		}
		got, rest := a.Tick(k.counts, k.listeners, nil)
		require.Zero(t, rest)
		var have kinds
		for _, d := range got {
			require.False(t, d.Estimated)
			switch d.Packet {
			case model.PacketSYN:
				have.syn += d.Packets
			case model.PacketACK:
				have.ack += d.Packets
			case model.PacketUnknown:
				have.unknown += d.Packets
			}
		}
		require.Equal(t, want, have)
	}
}

// However much happens between the two readings of a tick, a listener that
// lives on accounts for every drop in the end, and for none too many.
func TestAttributionRacingReadings(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	k := &kernel{truth: map[model.ListenerID]uint64{}}
	k.listen(8080, true)
	o := &observer{Attribution: NewAttribution(k.counts, append([]SocketDrops(nil), k.listeners...)), by: map[model.ListenerID]uint64{}}
	burst := func() {
		for range r.IntN(30) * r.IntN(3) {
			k.drop(0, true, r.IntN(2) == 0)
		}
	}
	for range 5000 {
		burst()
		o.tick(t, k, burst)
	}
	o.tick(t, k, func() {})
	require.Equal(t, k.total, o.attributed)
	require.Zero(t, o.unattributed)
}

// Where only one listener drops in each tick, every packet is given to the one
// that dropped it, whatever the others' over-counts were.
func TestAttributionFindsTheRightListener(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	k := newKernel(1<<32-40, 1000)
	o := &observer{Attribution: NewAttribution(k.counts, append([]SocketDrops(nil), k.listeners...)), by: map[model.ListenerID]uint64{}}
	for range 2000 {
		i := r.IntN(len(k.listeners))
		for range 1 + r.IntN(20) {
			k.drop(i, true, r.IntN(2) == 0)
		}
		o.tick(t, k, func() {})
	}
	for _, l := range k.listeners {
		if l.Watched {
			require.Equal(t, k.truth[l.ID], o.by[l.ID], l.ID)
		}
	}
	require.Equal(t, k.truth[listenerID(8083)], o.unattributed)
}
