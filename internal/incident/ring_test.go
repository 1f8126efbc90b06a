package incident

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

var start = time.Unix(1_700_000_000, 0)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func look(when time.Time, port uint16, dropped uint64, queue int) *model.Snapshot {
	return &model.Snapshot{Time: when, Listeners: []model.Listener{{
		ID:          model.ListenerID{NetNS: 1, Address: netip.AddrPortFrom(netip.IPv6Unspecified(), port)},
		Port:        port,
		AcceptQueue: &model.AcceptQueue{Length: queue, Limit: 100},
		Connections: &model.Connections{Accepted: 10},
		Totals:      model.Totals{Dropped: map[model.DropKey]uint64{{Cause: model.CauseMaxConnections}: dropped}},
	}}}
}

func TestHistoryBySecond(t *testing.T) {
	h := NewHistory()
	key := KeyOf(&look(start, 8080, 0, 0).Listeners[0])
	require.Empty(t, h.Points(key))
	for _, s := range []*model.Snapshot{look(at(0), 8080, 100, 1), look(at(1), 8080, 103, 7), look(at(1.5), 8080, 104, 3), look(at(1.5), 8080, 900, 90), look(at(3), 8080, 104, 0)} {
		h.Observe(s)
	}
	unknown := [...]int8{-1, -1, -1, -1}
	require.Equal(t, []recording.Point{
		{At: start.Unix(), Peak: 1, Inside: 11, InFlight: -1, Used: unknown}, // what was dropped before is not this second's
		{At: start.Unix() + 1, Drops: 4, Cause: model.CauseMaxConnections, Peak: 7, Inside: 13, InFlight: -1, Used: unknown},
		{At: start.Unix() + 3, Inside: 10, InFlight: -1, Used: unknown},
	}, h.Points(key))
}

func TestHistoryIsBounded(t *testing.T) {
	h := NewHistory()
	for i := range 2 * Span {
		h.Observe(look(at(float64(i)), 8080, uint64(i), i%3))
	}
	points := h.Points(KeyOf(&look(start, 8080, 0, 0).Listeners[0]))
	require.Len(t, points, Span)
	for i, p := range points {
		require.Equal(t, start.Unix()+int64(Span+i), p.At)
		require.Equal(t, uint32(1), p.Drops)
	}
	for port := range uint16(200) {
		h.Observe(look(at(2*Span+float64(port)/1000), port, 0, 0))
	}
	require.Len(t, h.rings, maxClosed+1)
	h.Observe(look(at(4*Span), 8080, 0, 0))
	require.Len(t, h.rings, 1, "those of listeners that closed are forgotten")
}

func TestClockSetBack(t *testing.T) {
	h := NewHistory()
	h.Observe(look(at(100), 8080, 5, 9))
	h.Observe(look(at(0), 8080, 6, 1))
	h.Observe(look(at(1), 8080, 8, 1))
	points := h.Points(KeyOf(&look(start, 8080, 0, 0).Listeners[0]))
	require.Len(t, points, 2)
	require.Equal(t, uint32(2), points[1].Drops)
}
