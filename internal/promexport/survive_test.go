package promexport_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/promexport"
)

// restart is a listener that listens, closes and comes back, still unknown.
func restart() (up, gone, back *model.Snapshot) {
	up = fleet(1)
	l := up.Listeners[0]
	gone = fleet(0)
	gone.Retired = []model.RetainedTotals{{ID: l.ID, Totals: l.Totals}}
	back = fleet(1)
	back.Listeners[0].Process, back.Listeners[0].Connector = nil, nil
	return up, gone, back
}

func TestCountersSurviveTheListenerAndGaugesDoNot(t *testing.T) {
	up, gone, back := restart()
	var now *model.Snapshot
	c := promexport.NewCollector(func() *model.Snapshot { return now }, time.Unix(1_700_000_000, 0))

	now = up
	before := gather(t, c)
	now = gone
	during := gather(t, c)
	now = back
	after := gather(t, c)

	const drops = "tcpdiag_listener_dropped_packets_total"
	require.InDelta(t, 1700, samples(during[drops])["cause=max_connections,packet=syn"], 0)
	require.Equal(t, samples(before[drops]), samples(during[drops]), "series at 0 stay too, or the next drop is missed")
	require.Subset(t, samples(after[drops]), samples(before[drops]), "and while the connector is not known yet")
	for _, name := range []string{
		"tcpdiag_listener_accept_queue_full_seconds_total", "tcpdiag_listener_abandoned_requests_total",
		"tcpdiag_listener_queue_resets_total",
	} {
		require.Equal(t, samples(before[name]), samples(during[name]), name)
	}
	require.Equal(t, texts(before["tcpdiag_listener_accept_queue_fill_ratio"]), texts(during["tcpdiag_listener_accept_queue_fill_ratio"]))
	for name, f := range during {
		if f.GetMetric()[0].GetGauge() != nil {
			require.NotContains(t, name, "tcpdiag_listener_")
			require.NotContains(t, name, "tcpdiag_connector_")
			require.NotContains(t, name, "tcpdiag_process_")
		}
	}
}

func TestAForgottenListenerLeavesNothing(t *testing.T) {
	up, gone, back := restart()
	now := up
	c := promexport.NewCollector(func() *model.Snapshot { return now }, time.Unix(1_700_000_000, 0))
	gather(t, c)
	now = gone
	gather(t, c)
	now = fleet(0) // an hour later
	for name := range gather(t, c) {
		require.NotContains(t, name, "tcpdiag_listener_")
	}
	back.Listeners[0].Totals = model.Totals{}
	now = back
	require.ElementsMatch(t, []string{"accept_queue", "syn_backlog"}, causesOf(gather(t, c)), "the memory went with it")
}

// 100 restarts, each with another pid and inode, are one listener.
func TestRestartsAddNoSeries(t *testing.T) {
	s := fleet(1)
	c := promexport.NewCollector(source(s), time.Unix(1_700_000_000, 0))
	want := series(gather(t, c))
	for i := range 100 {
		s.Listeners[0].Process.PID, s.Listeners[0].Inode = 1000+i, uint32(i)
		require.Equal(t, want, series(gather(t, c)))
	}
}

func TestVanishedListenersAreBounded(t *testing.T) {
	s := fleet(0)
	base := series(collect(t, s))
	for i := range 1000 {
		l := overloaded(uint16(20000+i), 42)
		s.Retired = append(s.Retired, model.RetainedTotals{ID: l.ID, Totals: l.Totals})
	}
	got := collect(t, s)
	require.Len(t, got["tcpdiag_listener_accept_queue_full_seconds_total"].GetMetric(), promexport.MaxRetained)
	require.LessOrEqual(t, series(got)-base, promexport.MaxRetained*promexport.MaxSeriesPerListener)
}

// Two series with the same labels would fail the whole scrape.
func TestWhatNamesItselfTwiceIsExportedOnce(t *testing.T) {
	s := fleet(2)
	first, twin := s.Listeners[0], s.Listeners[0]
	other := overloaded(8080, 99)
	other.ID.NetNS = 1
	twin.AcceptQueue = &model.AcceptQueue{Length: 55}
	twin.Process = &model.Process{PID: 7, Comm: "java"} // also java:8080
	elsewhere := overloaded(8080, 7)                    // another address, the same process label
	elsewhere.ID.Address = netipLoopback(8080)
	s.Listeners = append(s.Listeners, twin, elsewhere, other)
	s.Listeners[0].Limits = append(s.Listeners[0].Limits, s.Listeners[0].Limits...)
	s.Retired = []model.RetainedTotals{{ID: first.ID}, {ID: first.ID}, {ID: model.ListenerID{NetNS: 5, Address: first.ID.Address}}, {ID: model.ListenerID{NetNS: 5, Address: first.ID.Address}}}
	s.NetNS = append(s.NetNS, s.NetNS[0])
	s.Targets = append(s.Targets, s.Targets...)

	got := collect(t, s) // the pedantic registry fails on a duplicate
	lengths := got["tcpdiag_listener_accept_queue_length"].GetMetric()
	require.Len(t, lengths, 4)
	for _, m := range lengths {
		require.InDelta(t, 101, m.GetGauge().GetValue(), 0, "the first wins")
	}
}

func TestNothingUnboundedPerListener(t *testing.T) {
	s := fleet(1)
	s.Listeners[0].Process.Downstream = nil // a process's, with a bound of their own
	base := series(collect(t, fleet(0)))
	full := series(collect(t, s)) - base
	for i := range 50 {
		s.Listeners[0].Limits = append(s.Listeners[0].Limits, model.Limit{Name: string(rune('a' + i)), Ratio: .5})
	}
	for i, cause := range model.DropCauses() {
		for _, packet := range []model.Packet{model.PacketSYN, model.PacketACK, model.PacketUnknown} {
			s.Listeners[0].Totals.Dropped[model.DropKey{Cause: cause, Packet: packet}] = uint64(i + 1)
		}
	}
	most := series(collect(t, s)) - base
	require.Greater(t, most, full)
	require.Equal(t, promexport.MaxSeriesPerListener, most)

	n := 500
	require.LessOrEqual(t, series(collect(t, fleet(n)))-base, n*promexport.MaxSeriesPerListener)
}

// However many peers a process has, the series of its first twenty and of all
// others together are exported.
func TestPeersAreBounded(t *testing.T) {
	s := fleet(1)
	d := s.Listeners[0].Process.Downstream
	d.Peers = nil
	base := series(collect(t, s))
	for i := range 20 {
		d.Peers = append(d.Peers, model.Peer{Address: netip.AddrPortFrom(netip.IPv6Loopback(), uint16(i)), Connections: 4, InFlight: 1, Connecting: 1, Unknown: 1, Pool: &model.Pool{}})
	}
	require.Equal(t, 20*6, series(collect(t, s))-base)
}
