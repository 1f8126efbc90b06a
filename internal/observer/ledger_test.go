package observer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestLedgerSince(t *testing.T) {
	syn := model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}
	ack := model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketACK}
	var l ledger
	l.close(1, 1)
	l.drop(syn, 10, false)
	l.close(2, 1)
	l.close(3, 1)
	l.drop(syn, 5, true)
	l.drop(ack, 2, false)
	l.abandon(3)
	l.resetQueue(4)
	l.close(4, 1)

	all := l.since(1)
	require.EqualValues(t, 17, all.DroppedPackets)
	require.Equal(t, []model.Drops{
		{DropKey: syn, Packets: 15, Estimated: true},
		{DropKey: ack, Packets: 2},
	}, all.By)
	require.EqualValues(t, 3, all.AbandonedRequests)
	require.EqualValues(t, 4, all.QueueResets)

	for _, scan := range []int{2, 3} {
		late := l.since(scan)
		require.EqualValues(t, 7, late.DroppedPackets, "since scan %d", scan)
		require.True(t, late.By[0].Estimated)
	}
	require.Empty(t, l.since(4).By)
	require.EqualValues(t, 15, l.totals().Dropped[syn])
}

// A window that moves on must not lose the base it subtracts.
func TestLedgerForgetsWhatLeftTheWindow(t *testing.T) {
	key := model.DropKey{Cause: model.CauseSlowAccept, Packet: model.PacketSYN}
	var l ledger
	for scan := 1; scan <= 1000; scan++ {
		l.drop(key, 1, false)
		l.close(scan, scan-60)
	}
	require.LessOrEqual(t, len(l.marks), 61)
	require.EqualValues(t, 60, l.since(940).DroppedPackets)
	require.EqualValues(t, 1000, l.totals().Dropped[key])
}
