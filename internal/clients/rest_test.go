package clients

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Where tens of thousands of listeners were asked for they are not asked for again at once, as snapshots of all namespaces wait for that:
// whose packets were dropped is not known then, and who is alone is as before.
func TestListenersAreAskedForLessOften(t *testing.T) {
	for _, alone := range []bool{true, false} {
		tap := &namespaceTap{sockets: new(sockdiag.Conn), next: time.Now().Add(time.Hour), alone: alone}
		require.Equal(t, alone, tap.Alone())
		of, err := tap.dropped()
		require.ErrorIs(t, err, errRests)
		require.Nil(t, of)
	}
}

// A snapshot in the making may still hold a tap that is closed meanwhile.
func TestAClosedTapAsksNobody(t *testing.T) {
	tap := &namespaceTap{closed: true}
	require.ErrorIs(t, tap.listening(nil), errNoSockets)
	require.Nil(t, tap.sockets)
}
