package incident

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A port that was asked for may be about to get its server; where nobody asked, one has been there.
func TestAboutToStart(t *testing.T) {
	down := func(expected bool) *model.Listener {
		return &model.Listener{ID: model.ListenerID{NetNS: 7}, Port: 8080, Expected: expected, Verdict: model.Verdict{Status: model.StatusDown}}
	}
	at := time.Date(2026, 3, 1, 3, 12, 0, 0, time.UTC)
	for _, asked := range []bool{true, false} {
		var p starting
		l := down(asked)
		p.observe(&model.Snapshot{Time: at, Listeners: []model.Listener{*l}})
		require.Equal(t, asked, p.has(l, at.Add(time.Second)))
		require.False(t, p.has(l, at.Add(startsWithin)))
	}
}
