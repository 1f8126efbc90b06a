package clients

import (
	"sync/atomic"
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

// Those of many namespaces together take no more of the time than those of one.
func TestListenersOfManyNamespaces(t *testing.T) {
	const namespaces, cost = 60, 2 * time.Millisecond
	dumps, now := new(atomic.Int32), time.Unix(1_700_000_000, 0)
	var all []*namespaceTap
	for range namespaces {
		all = append(all, &namespaceTap{dumps: dumps})
	}
	all[0].spent(now, cost)
	require.Zero(t, all[0].next, "one is cheap")
	made := 0
	for end := now.Add(20 * time.Second); now.Before(end); now = now.Add(100 * time.Millisecond) {
		for _, tap := range all {
			if !now.Before(tap.next) {
				tap.spent(now, cost)
				made++
			}
		}
	}
	require.Less(t, time.Duration(made)*cost, 20*time.Second/listenRest*3/2)
	require.Greater(t, made, namespaces)
	for _, tap := range all[1:] {
		tap.setCostly(false)
	}
	all[0].next = time.Time{}
	all[0].spent(now, cost)
	require.Zero(t, all[0].next)
	all[0].spent(now, costly/2)
	require.Zero(t, dumps.Load())
}

// A snapshot in the making may still hold a tap that is closed meanwhile.
func TestAClosedTapAsksNobody(t *testing.T) {
	tap := &namespaceTap{closed: true}
	require.ErrorIs(t, tap.listening(nil), errNoSockets)
	require.Nil(t, tap.sockets)
}
