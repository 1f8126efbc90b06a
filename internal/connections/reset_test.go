package connections

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

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
