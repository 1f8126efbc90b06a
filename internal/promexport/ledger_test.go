package promexport_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/promexport"
)

// The sum by cause never falls: a listener that goes, whose counters begin again or who comes
// back with what it had, takes nothing with it and brings nothing twice.
func TestDroppedByCauseNeverFalls(t *testing.T) {
	two := fleet(2)
	drop := func(l *model.Listener, n uint64) {
		l.Totals = model.Totals{Dropped: map[model.DropKey]uint64{
			{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}: n,
			{Cause: model.CauseMaxConnections, Packet: model.PacketACK}: 1,
			{Cause: model.CauseSynBacklog, Packet: model.PacketSYN}:     3,
		}}
	}
	drop(&two.Listeners[0], 10)
	drop(&two.Listeners[1], 20)
	now := two
	c := promexport.NewCollector(func() *model.Snapshot { return now }, time.Unix(1_700_000_000, 0))
	see := func() (connections, syn, overflow float64) {
		got := gather(t, c)
		by := samples(got["tcpdiag_dropped_packets_total"])
		for _, m := range got["tcpdiag_listener_overflow_packets_total"].GetMetric() {
			overflow += m.GetCounter().GetValue()
		}
		return by["cause=max_connections"], by["cause=syn_backlog"], overflow
	}
	require.Equal(t, []float64{32, 6, 32}, three(see()))
	require.Equal(t, []float64{32, 6, 32}, three(see()), "a second scrape adds nothing")

	gone := *two
	gone.Listeners, gone.Retired = two.Listeners[:1], []model.RetainedTotals{{ID: two.Listeners[1].ID, Totals: two.Listeners[1].Totals}}
	now = &gone
	require.Equal(t, []float64{32, 6, 32}, three(see()), "its counters are kept for a while")
	forgotten := gone
	forgotten.Retired = nil
	now = &forgotten
	require.Equal(t, []float64{32, 6, 11}, three(see()), "then they are in the sum alone")

	again := fleet(2)
	drop(&again.Listeners[0], 15)
	drop(&again.Listeners[1], 2)
	now = again
	require.Equal(t, []float64{40, 9, 19}, three(see()), "5 and 3 more; the second began again")

	earlier := fleet(2)
	earlier.Time = again.Time.Add(-time.Second)
	drop(&earlier.Listeners[0], 12)
	drop(&earlier.Listeners[1], 1)
	now = earlier
	connections, syn, _ := see()
	require.Equal(t, []float64{40, 9}, []float64{connections, syn}, "a scrape at the same time brings its snapshot late")
	now = again
	require.Equal(t, []float64{40, 9, 19}, three(see()))
}

func three(a, b, c float64) []float64 { return []float64{a, b, c} }
