package losses

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestLedgerSince(t *testing.T) {
	syn := model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}
	ack := model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketACK}
	var l ledger
	l.close(1, 1)
	drop(&l, syn, 10, false)
	l.close(2, 1)
	l.close(3, 1)
	drop(&l, syn, 5, true)
	drop(&l, ack, 2, false)
	l.abandon(3, 3)
	l.resetQueue(4)
	l.close(4, 1)

	all := l.lost(1, true)
	require.EqualValues(t, 17, all.DroppedPackets)
	require.Equal(t, []model.Drops{
		{DropKey: syn, Packets: 15, Estimated: true, Evidence: model.EvidencePhases},
		{DropKey: ack, Packets: 2, Evidence: model.EvidencePhases},
	}, all.By)
	require.EqualValues(t, 3, all.AbandonedRequests)
	require.EqualValues(t, 4, all.QueueResets)

	for _, scan := range []int{2, 3} {
		late := l.lost(scan, true)
		require.EqualValues(t, 7, late.DroppedPackets, "since scan %d", scan)
		require.True(t, late.By[0].Estimated)
	}
	require.Empty(t, l.lost(4, true).By)
	require.EqualValues(t, 15, l.totals().Dropped[syn])
}

// A client that had closed at one scan, whose connection is gone at the next, ten seconds later: it gave up
// before the one, whatever else was lost meanwhile.
func TestLedgerAbandonedBehindACheckpoint(t *testing.T) {
	key := model.DropKey{Cause: model.CauseSlowAccept, Packet: model.PacketSYN}
	for _, others := range []bool{false, true} {
		var l ledger
		l.close(1, 1)
		seen := l.number
		for n := 2; n <= 10; n++ {
			if others && n%4 == 0 {
				drop(&l, key, 1, false)
			}
			l.close(n, 1)
		}
		l.abandon(3, seen)
		require.EqualValues(t, 3, l.lost(1, true).AbandonedRequests)
		require.Zero(t, l.lost(2, true).AbandonedRequests)
		require.Zero(t, l.lost(9, true).AbandonedRequests)
		if others {
			require.EqualValues(t, 2, l.lost(1, true).DroppedPackets)
			require.EqualValues(t, 1, l.lost(4, true).DroppedPackets)
		}
		l.abandon(2, l.number)
		l.close(11, 1)
		require.EqualValues(t, 2, l.lost(10, true).AbandonedRequests)
		require.Zero(t, l.lost(11, true).AbandonedRequests)
		require.EqualValues(t, 5, l.totals().AbandonedRequests)
	}
}

// A window that moves on must not lose the base it subtracts.
func TestLedgerForgetsWhatLeftTheWindow(t *testing.T) {
	key := model.DropKey{Cause: model.CauseSlowAccept, Packet: model.PacketSYN}
	var l ledger
	for scan := 1; scan <= 1000; scan++ {
		drop(&l, key, 1, false)
		l.close(scan, scan-60)
	}
	require.LessOrEqual(t, len(l.marks), 61)
	require.EqualValues(t, 60, l.lost(940, true).DroppedPackets)
	require.EqualValues(t, 1000, l.totals().Dropped[key])
}

// drop books packets whose cause is known at once.
func drop(l *ledger, key model.DropKey, packets uint64, estimated bool) {
	l.pend(Attributed{Packet: key.Packet, Packets: packets, Estimated: estimated}, time.Time{}, false)
	l.settle(func(Drop) (model.Cause, model.Evidence, bool) { return key.Cause, model.EvidencePhases, true })
}

// A cause that is read only after a checkpoint belongs to the packets from
// before it: the window that begins there has none of them.
func TestLedgerSettlesBehindACheckpoint(t *testing.T) {
	var l ledger
	l.close(1, 1)
	l.pend(Attributed{Packet: model.PacketSYN, Packets: 7}, time.Time{}, false)
	l.close(2, 1)
	provisional := l.lost(1, true)
	require.EqualValues(t, 7, provisional.DroppedPackets)
	require.Equal(t, model.CauseAcceptQueue, provisional.By[0].Cause)
	require.Empty(t, l.totals().Dropped, "a counter cannot take its cause back")

	l.settle(func(Drop) (model.Cause, model.Evidence, bool) { return "", "", false })
	require.Equal(t, provisional, l.lost(1, true), "the reading is not there yet")
	l.settle(func(Drop) (model.Cause, model.Evidence, bool) {
		return model.CauseMaxConnections, model.EvidencePhases, true
	})
	require.Equal(t, []model.Drops{{
		DropKey: model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketSYN},
		Packets: 7, Evidence: model.EvidencePhases,
	}}, l.lost(1, true).By)
	require.Zero(t, l.lost(2, true).DroppedPackets)
	require.Empty(t, l.lost(2, true).By)
}

func TestLedgerBurst(t *testing.T) {
	type scan struct {
		at      time.Duration // after the start
		packets uint64        // dropped since the one before
	}
	for name, c := range map[string]struct {
		scans []scan
		want  uint64
	}{
		"one scan":                        {[]scan{{0, 5}}, 0},
		"nothing":                         {[]scan{{0, 5}, {time.Second, 0}}, 0},
		"one burst":                       {[]scan{{0, 0}, {time.Second, 166}, {2 * time.Second, 0}}, 166},
		"bursts are not added":            {[]scan{{0, 0}, {time.Second, 100}, {2 * time.Second, 150}, {3 * time.Second, 120}}, 150},
		"scans brought forward are added": {[]scan{{0, 0}, {time.Second, 0}, {1200 * time.Millisecond, 40}, {1500 * time.Millisecond, 70}, {1900 * time.Millisecond, 30}, {2900 * time.Millisecond, 60}}, 140},
		"scans far apart":                 {[]scan{{0, 0}, {8 * time.Second, 900}, {16 * time.Second, 20}}, 900},
		"what was lost before the window": {[]scan{{0, 1000}, {time.Second, 3}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var l ledger
			var past []Checkpoint
			for i, s := range c.scans {
				if s.packets > 0 {
					drop(&l, model.DropKey{Cause: model.CauseSlowAccept, Packet: []model.Packet{model.PacketSYN, model.PacketACK}[i%2]}, s.packets, false)
				}
				l.close(i+7, 7)
				past = append(past, Checkpoint{Number: i + 7, At: time.Unix(1000, 0).Add(s.at)})
			}
			require.Equal(t, c.want, l.burst(past))
		})
	}
}

// TestPacked: counters come out as they went in, also where a kernel's set of
// them differs from the one before, and the names are kept once.
func TestPacked(t *testing.T) {
	first := model.Counters{"ListenDrops": 3, "EstabResets": 0}
	a := pack(first, packed{}, false)
	require.Equal(t, first, a.unpack())
	second := model.Counters{"ListenDrops": 4, "EstabResets": 1}
	b := pack(second, a, false)
	require.Equal(t, second, b.unpack())
	require.Same(t, &a.names[0], &b.names[0])
	other := model.Counters{"ListenDrops": 5, "OutRsts": 2}
	require.Equal(t, other, pack(other, b, false).unpack())
	require.Equal(t, model.Counters{}, packed{}.unpack())
	require.Equal(t, first, a.unpack())
}

func TestAllot(t *testing.T) {
	for _, tt := range []struct {
		total        uint64
		wanted, want []uint64
	}{
		{0, nil, nil},
		{0, []uint64{3, 4}, []uint64{0, 0}},
		{7, []uint64{3, 4}, []uint64{3, 4}},
		{100, []uint64{3, 4}, []uint64{3, 4}},
		{10, []uint64{10, 10}, []uint64{5, 5}},
		{1, []uint64{1, 1, 1}, []uint64{1, 0, 0}},
		{5, []uint64{9, 0, 1}, []uint64{5, 0, 0}},
		{9, []uint64{7, 0, 5}, []uint64{5, 0, 4}},
	} {
		require.Equal(t, tt.want, Allot(tt.total, tt.wanted, cmp.Compare), "%d for %v", tt.total, tt.wanted)
	}
}

// Who administers a network namespace gives names to the rules of its netfilter, as often as he likes: few lists of them are kept, and
// what was known before counts on.
func TestNamesByChurn(t *testing.T) {
	b := NewBooks(time.Minute)
	at := time.Unix(1_700_000_000, 0)
	for n := range uint64(600) {
		at = at.Add(time.Second)
		c := model.Counters{"OutRsts": n, model.RulesRead: n, model.RefusedMissed: 0, "refused 127.0.0.1:8080": n}
		for i := range uint64(64) {
			c[fmt.Sprintf("nft inet filter input handle %d drop", 64*n+i)] = 5
		}
		b.Checkpoint(at, c)
		require.LessOrEqual(t, b.history.lists(), mostLists+1)
		last := b.history.last().counters
		require.LessOrEqual(t, len(last.names), len(c))
	}
	d := b.Window().Delta
	require.EqualValues(t, 60, d["OutRsts"])
	require.EqualValues(t, 60, d["refused 127.0.0.1:8080"])
	known := b.history.last().counters.names
	for range 2 * 60 {
		at = at.Add(time.Second)
		b.Checkpoint(at, model.Counters{"OutRsts": 600, model.RulesRead: 600, "nft inet filter input handle 9 drop": 7})
	}
	require.Equal(t, 1, b.history.lists())
	require.NotEqual(t, known, b.history.last().counters.names)
	require.EqualValues(t, 7, b.history.last().counters.unpack()["nft inet filter input handle 9 drop"])
}

// What a filter of the socket drops only the socket counts: it is known for as long as the window, and what the queue drops is not
// among it, though the socket counts that, too.
func TestWhatTheSocketAloneDrops(t *testing.T) {
	o := newOverload(t)
	o.drops += 20 // the filter
	o.wait(1)
	o.lose(1, 5, model.CauseMaxThreads)
	o.wait(8)
	require.EqualValues(t, 20, o.books.Losses(o.account(), false).SocketDrops)
	require.EqualValues(t, 5, o.books.Losses(o.account(), false).DroppedPackets)
	o.wait(3)
	lately := o.books.Lately(o.account(), false, o.now, model.Quiet)
	require.NotNil(t, lately)
	require.Zero(t, lately.Losses.SocketDrops, "of before these ten seconds")
	require.EqualValues(t, 20, o.books.Losses(o.account(), false).SocketDrops)
}

// Of an ACK that finds the accept queue full the socket counts two: no filter has dropped the other.
func TestSocketCountsDroppedACKsTwice(t *testing.T) {
	o := newOverload(t)
	o.wait(1)
	o.drops += 5 // besides those of the next line
	o.drop(5)
	o.settle(model.CauseMaxThreads)
	o.wait(8)
	lost := o.books.Losses(o.account(), false)
	require.EqualValues(t, 5, lost.DroppedPackets)
	require.Equal(t, model.PacketACK, lost.By[0].Packet)
	require.Zero(t, lost.SocketDrops)
}
