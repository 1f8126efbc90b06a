package incident

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// counting samples a listener's queue and books what it drops, as a namespace does.
type counting struct {
	books *losses.Books
	id    model.ListenerID
	drops uint32
}

// second is one of samples. The list that ends it began late before: it waited for its turn.
func (c *counting) second(end time.Time, late time.Duration) *model.QueueSamples {
	a := c.books.Account(c.id)
	for i := range 100 {
		a.Observe(losses.Queue{At: end.Add(time.Duration(i-100) * 10 * time.Millisecond), Length: uint32(5 + i%2), Limit: 5})
	}
	c.drops += 3
	c.books.Tick(end.Add(-late), losses.NamespaceCounts{ListenDrops: uint64(c.drops), ListenOverflows: uint64(c.drops)},
		[]losses.SocketDrops{{ID: c.id, Drops: c.drops, Watched: true}})
	return a.TakeSamples()
}

// A recording of a losing server is read whole at any second, in memory and in a directory, before and after it
// has reached its size.
func TestEveryRecordIsReadAgain(t *testing.T) {
	for _, where := range []struct {
		dir     string
		seconds int
		full    bool
	}{{t.TempDir(), 160, false}, {"", 420, true}} {
		d, tracker := newDirect(t, where.dir, someLimits())
		v := newLife(6)
		c := &counting{losses.NewBooks(time.Minute), model.ListenerID{NetNS: 7}, 0}
		kinds := []trouble{connectionsFull, idleFull, stopped, filesFull}
		for i := range where.seconds {
			s := v.next(kinds[i/3%len(kinds)])
			s.Listeners[0].AcceptQueue.Samples = c.second(v.now, time.Duration(i%50)*10*time.Millisecond)
			tracker.record(s, d)
			if i%40 > 0 && i < where.seconds-1 {
				continue
			}
			in, err := d.open(d.shelf.list()[0].ID)
			require.NoError(t, err)
			r, frames := readAll(t, in)
			require.NoError(t, in.Close())
			require.Zero(t, r.Damaged, "second %d", i)
			require.False(t, r.Torn)
			require.Len(t, frames, d.shelf.list()[0].Frames)
			for _, f := range frames {
				_, same, judged := f.Replay()
				require.True(t, same && judged)
			}
		}
		require.Equal(t, where.full, d.lost.Load() > 0)
		d.close()
	}
}
