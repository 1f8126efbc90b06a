package facts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A port that has been down for long hides no other's closing.
func TestDown(t *testing.T) {
	at := func(minute int) time.Time { return time.Unix(int64(60*minute), 0) }
	var down Down
	list := func(minute int, up ...bool) time.Time {
		w := Watchlist{At: at(minute)}
		for i, up := range up {
			w.Targets = append(w.Targets, model.Target{Port: uint16(8080 + i), Up: up})
		}
		down = w.Down(down)
		return down.Latest()
	}
	require.Zero(t, list(1, true, true))
	require.Equal(t, at(2), list(2, false, true))
	require.Equal(t, at(2), list(3, false, true))
	require.Equal(t, at(60), list(60, false, false), "the other one")
	require.Equal(t, at(60), list(61, false, false))
	require.Equal(t, at(2), list(62, false, true))
	require.Zero(t, list(63, true, true))
	require.Equal(t, at(64), list(64, false, true), "again")
}
