package schedule

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/evidence"
)

// A packet is counted within a second of being dropped even where nothing names
// its cause: the snapshot that gives it up is made when its time has come.
func TestCausesAreGivenUpInTime(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, nil)
	w.scanned()
	w.looping.Store(true)
	k.walkFails = errors.New("no answer")
	w.reading = evidence.Reading{}
	w.pass(time.Second)
	k.overflow(3)
	w.Sample()
	dropped := w.clock()
	w.publish(false)
	require.EqualValues(t, 3, w.only(w.Snapshot()).Totals.Pending)
	require.Equal(t, dropped.Add(600*time.Millisecond), w.collector.waits())
	w.pass(600 * time.Millisecond)
	w.publish(false)
	require.Zero(t, w.only(w.Snapshot()).Totals.Pending)
	require.Zero(t, w.collector.waits())
}
