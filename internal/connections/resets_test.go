package connections

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A client's reset can fall between the reading of EstabResets and the walk that
// still has its socket: it is not lost for the next walk.
func TestResetDuringAWalkCountsAtTheNextOne(t *testing.T) {
	var r Resets
	require.Zero(t, r.Next(10, 10, 0), "the beginning")
	most := r.Next(10, 11, 0) // the socket was in this walk, and reset before the second reading
	require.EqualValues(t, 1, most)
	r.Use(most, 0)
	most = r.Next(11, 11, 0)
	require.EqualValues(t, 1, most, "now it has vanished")
	r.Use(most, 1)
	require.Zero(t, r.Next(11, 11, 0), "once")
}

func TestResetsOfOthersAreNotKept(t *testing.T) {
	var r Resets
	r.Next(10, 10, 0)
	most := r.Next(15, 15, 0) // long before this walk
	require.EqualValues(t, 5, most)
	r.Use(most, 0)
	require.Zero(t, r.Next(15, 15, 0))
	require.Zero(t, r.Next(18, 18, 3), "clients of a closed listener's queue")
}

func TestFreeSlots(t *testing.T) {
	for name, tt := range map[string]struct {
		accepted int
		actuator *int
		want     int
	}{
		"Actuator was not asked":                         {6, nil, 4},
		"it says that all are taken":                     {6, new(10), 4},
		"it says more than that":                         {6, new(11), 4},
		"it counts one too many below the limit":         {6, new(9), 2},
		"what is seen is all, and the one too many":      {6, new(7), 0},
		"it was asked before the connections were there": {6, new(2), 4},
	} {
		l := &model.Listener{
			Connections: &model.Connections{Accepted: tt.accepted},
			Connector:   &model.Connector{MaxConnections: &model.Setting[int]{Value: 10}, CurrentConnections: tt.actuator},
		}
		require.Equal(t, tt.want, freeSlots(l), name)
	}
}
