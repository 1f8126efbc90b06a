package diagnosis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The stage says as many as the answer does: 13 of these 16 are of clients that have left.
func TestStageCountsRequestsWhoseClientsHaveLeft(t *testing.T) {
	l := model.Listener{Connections: &model.Connections{Accepted: 20, Abandoned: 13}}
	l.Connections.Phases[model.Waiting] = 3
	require.Equal(t, "16 wait for a thread", StageNote(&l, reading.StageMaxConnections))
	l.Connections = &model.Connections{Accepted: 2}
	l.Connections.Phases[model.Idle] = 2
	require.Equal(t, "2 idle", StageNote(&l, reading.StageMaxConnections))
	l.Connections = nil
	require.Empty(t, StageNote(&l, reading.StageMaxConnections))
}
