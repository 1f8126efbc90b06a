package reading

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A short time says little of an acceptor, but it does not say either that one is at work.
func TestOldestStands(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	look := func(at, wait time.Duration) *model.Listener {
		return &model.Listener{Inode: 7, AcceptQueue: &model.AcceptQueue{Length: 101, Limit: 100, OldestWait: &wait, OldestAt: began.Add(at)}}
	}
	first := look(0, time.Second)
	require.True(t, Pair{Before: first, Now: look(400*time.Millisecond, 1400*time.Millisecond)}.OldestStands())
	require.Zero(t, Pair{Before: first, Now: look(400*time.Millisecond, 1400*time.Millisecond)}.NothingAccepted())
	require.False(t, Pair{Before: first, Now: look(400*time.Millisecond, 1200*time.Millisecond)}.OldestStands(), "it has left, and another one came 200 ms later")
	require.False(t, Pair{Before: first, Now: first}.OldestStands(), "the same reading")
}

// On a busy machine the connections are read at other times than the snapshots are made.
func TestNothingAcceptedByTheReadingsOwnTime(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	look := func(at, wait time.Duration) *model.Listener {
		q := &model.AcceptQueue{Length: 101, Limit: 100, OldestWait: &wait}
		if at > 0 {
			q.OldestAt = began.Add(at)
		}
		return &model.Listener{Inode: 7, AcceptQueue: q}
	}
	for name, c := range map[string]struct {
		before, now *model.Listener
		want        time.Duration
	}{
		"as far apart as the snapshots":        {look(0, time.Second), look(0, 3*time.Second), 2 * time.Second},
		"closer than the snapshots":            {look(time.Second, time.Second), look(2*time.Second, 2*time.Second), time.Second},
		"the same reading":                     {look(time.Second, time.Second), look(time.Second, time.Second), 0},
		"one has left, the next is the oldest": {look(time.Second, time.Second), look(3*time.Second, 2*time.Second), 0},
		"closer, and their time is not known":  {look(0, time.Second), look(0, 2*time.Second), 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := Pair{Now: c.now, Before: c.before, Elapsed: 2 * time.Second}
			require.Equal(t, c.want, p.NothingAccepted())
			require.Equal(t, c.want > 0 && !c.now.AcceptQueue.OldestAt.IsZero(), p.OldestStands())
		})
	}
}
