package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nothing is the upkeep where only the samples cost something.
func nothing() time.Duration { return 0 }

// ticks lets n ticks pass, ten milliseconds apart, with a sample of every calm
// namespace whose turn it is.
func ticks(t *turns, now time.Time, n, namespaces int, each time.Duration) (later time.Time, asked []int) {
	asked = make([]int, namespaces)
	for range n {
		now = now.Add(10 * time.Millisecond)
		t.begin(now)
		t.known = false // the thread's clock knows nothing of this one
		end := now
		for i := range namespaces {
			if t.has(i) {
				asked[i]++
				end = end.Add(each)
			}
		}
		t.end(end, false, nothing)
	}
	return now, asked
}

// Calm namespaces take turns where their samples would cost more than a hundredth of
// a core, as many as it needs, each as often as another; and no more turns once there
// is less to do.
func TestCalmNamespacesTakeTurns(t *testing.T) {
	for _, c := range []struct {
		namespaces int
		each       time.Duration
		want       int64
	}{
		{1, 5 * time.Microsecond, 1},
		{19, 5 * time.Microsecond, 1},
		{50, 5 * time.Microsecond, 3},
		{1, 250 * time.Microsecond, 3}, // 2,000 listeners in one
		{300, 7 * time.Microsecond, mostTurns},
	} {
		var s turns
		now, _ := ticks(&s, time.Unix(1_700_000_000, 0), 6000, c.namespaces, c.each)
		require.Equal(t, c.want, s.every.Load(), "%d namespaces of %v", c.namespaces, c.each)
		now, asked := ticks(&s, now, 60*int(c.want), c.namespaces, c.each)
		for i := range asked {
			require.Equal(t, 60, asked[i], "all are asked equally often")
		}
		ticks(&s, now, 6000, 1, 5*time.Microsecond)
		require.EqualValues(t, 1, s.every.Load())
	}
}

// What the measured ticks cost stands for all.
func TestCostOfSamples(t *testing.T) {
	var s turns
	ticks(&s, time.Unix(1_700_000_000, 0), 700, 1, 5*time.Microsecond)
	require.Equal(t, 3500*time.Microsecond, s.total())
}

// While all are calm they are sampled together, at one tick for all their turns; the
// first that is not brings back every tick, at which the others take turns.
func TestCalmNamespacesTogether(t *testing.T) {
	const namespaces, each = 50, 5 * time.Microsecond
	var s turns
	now, _ := ticks(&s, time.Unix(1_700_000_000, 0), 6000, namespaces, each)
	require.EqualValues(t, 3, s.every.Load())
	require.Equal(t, 1, s.step())

	s.end(now, true, nothing)
	require.Equal(t, 3, s.step())
	before := s.total()
	for range 2000 {
		now = now.Add(time.Duration(s.step()) * 10 * time.Millisecond)
		s.begin(now)
		s.known = false
		for i := range namespaces {
			require.True(t, s.has(i))
		}
		s.end(now.Add(namespaces*each), true, nothing)
		require.Equal(t, 3, s.step())
	}
	require.Equal(t, 2000*namespaces*each, s.total()-before, "each of them is measured")

	s.end(now, false, nothing)
	require.Equal(t, 1, s.step())
	_, asked := ticks(&s, now, 30, namespaces, each)
	for i := range asked {
		require.Equal(t, 10, asked[i])
	}
}

// One namespace whose samples are cheap keeps every tick, calm or not.
func TestOneCalmNamespace(t *testing.T) {
	var s turns
	now, _ := ticks(&s, time.Unix(1_700_000_000, 0), 600, 1, 5*time.Microsecond)
	s.end(now, true, nothing)
	require.Equal(t, 1, s.step())
}
