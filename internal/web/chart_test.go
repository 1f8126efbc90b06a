package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Dropped packets are drawn by the cause of most of them, one of another version as
// unknown; a calm quarter of an hour has no cause.
func TestDropsAreDrawnByCause(t *testing.T) {
	const now = 1_700_000_000
	drops := func(points ...recording.Point) chart {
		p := plot{points: points, width: columnOf, span: "15 min"}
		return p.drops()
	}
	calm := drops(recording.Point{At: now - 60}, recording.Point{At: now})
	require.Empty(t, calm.Parts)
	require.Equal(t, "Packets dropped per second: last 0, at most 0 in 15 min", calm.Text)

	c := drops(
		recording.Point{At: now - 60, Drops: 20, Cause: model.CauseSynBacklog},
		recording.Point{At: now - 30, Drops: 5, Cause: "a_later_one"},
		recording.Point{At: now - 1, Drops: 3, Cause: model.CauseSlowAccept},
		recording.Point{At: now, Drops: 40, Cause: model.CauseMaxConnections},
	)
	require.Equal(t, "Packets dropped per second: last 40, at most 40 in 15 min, max_connections, slow_accept, syn_backlog, unknown", c.Text)
	require.Equal(t, []layer{
		{"max_connections", "max_connections", "M179 40V2.0H180V40Z"},
		{"slow_accept", "slow_accept", "M178 40V37.1H179V40Z"},
		{"syn_backlog", "syn_backlog", "M167 40V21.0H168V40Z"},
		{"unknown", "unknown", "M173 40V35.2H174V40Z"},
	}, c.Parts)
}

// The kernel may take one more for a moment: "27 of 26" reads as a mistake.
func TestChartsHaveNoMoreThanThereIsRoom(t *testing.T) {
	p := plot{points: []recording.Point{{At: 1, Peak: 7, Inside: 27}}, width: 1, span: "1 min"}
	require.Equal(t, "6 of 6", p.queue(6).Now)
	require.Equal(t, "26 of 26", p.inside(26).Now)
	require.Equal(t, "26", p.inside(26).Top)
}
