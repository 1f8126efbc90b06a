package loadreport

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
)

// Whose connection the server has closed did not lose patience.
func TestClosedByTheServer(t *testing.T) {
	var names []string
	for _, p := range outcomes(&api.RunClients{Offered: 10, TurnedAway: 10, Unanswered: new(uint64(10)), Closed: 7}) {
		names = append(names, p.Name+" "+p.N)
	}
	require.Equal(t, []string{"got in and gave up waiting 3", "closed by the server without an answer 7"}, names)
}
