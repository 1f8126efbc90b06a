package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/hangs"
)

func TestPatience(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPatience(func() time.Time { return now })
	fails := func(owner string) { p.hangs(owner); p.ended(owner) }

	require.NoError(t, p.begin("a"))
	require.ErrorIs(t, p.begin("a"), ErrWaits, "one child for each owner")
	require.NoError(t, p.begin("b"))
	p.answered("b", time.Millisecond)
	require.Len(t, p.histories, 1, "who is fast is forgotten")

	fails("a") // again a minute later, then after two
	for _, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		now = now.Add(wait - 1)
		require.ErrorIs(t, p.begin("a"), ErrWaits)
		now = now.Add(1)
		require.NoError(t, p.begin("a"))
		fails("a")
	}
	for range 100 {
		now = now.Add(time.Hour)
		require.NoError(t, p.begin("a"), "an hour at most")
		fails("a")
	}
	now = now.Add(time.Hour)
	require.NoError(t, p.begin("a"))
	p.answered("a", time.Millisecond)
	require.Empty(t, p.histories)
	require.Zero(t, p.children.Taken())
}

// Those that are slow and answer take a tenth of the time, all together.
func TestSlowAnswers(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPatience(func() time.Time { return now })
	var lost, all time.Duration
	for range 10_000 {
		for owner := range 50 {
			if name := fmt.Sprint(owner); p.begin(name) == nil {
				now, all, lost = now.Add(400*time.Millisecond), all+400*time.Millisecond, lost+400*time.Millisecond
				p.answered(name, 400*time.Millisecond)
			}
		}
		require.NoError(t, p.begin("fast"), "who is not slow never waits")
		p.answered("fast", time.Millisecond)
		now, all = now.Add(10*time.Millisecond), all+10*time.Millisecond
	}
	require.Less(t, lost-50*400*time.Millisecond, all/10, "but for the first of each")
}

// Children that end at each request are started again after a growing pause, for each owner; all these owners together
// get ten in five seconds at most, and nobody else waits.
func TestChildrenThatEnd(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPatience(func() time.Time { return now })
	starts := make(map[string]int)
	count := func(owner string) {
		if p.begin(owner) == nil {
			starts[owner]++
			p.ends(owner)
		}
	}
	for range 6000 { // a minute
		count("one")
		now = now.Add(10 * time.Millisecond)
	}
	require.Equal(t, 6, starts["one"], "after 1, 2, 4, 8, 16 and 32 seconds")
	clear(starts)
	for range 500 {
		for owner := range 200 {
			count(fmt.Sprint(owner))
		}
		require.NoError(t, p.begin("honest"))
		p.answered("honest", time.Millisecond)
		now = now.Add(10 * time.Millisecond)
	}
	again := -200 // the first of each
	for _, n := range starts {
		again += n
	}
	require.LessOrEqual(t, again, 10)
	for range 30 {
		now = now.Add(restMost)
		count("one")
	}
	require.Equal(t, 30, starts["one"], "an hour at most")
	now = now.Add(restMost)
	require.NoError(t, p.begin("one"))
	p.answered("one", time.Millisecond)
	count("one")
	now = now.Add(restEnds)
	require.NoError(t, p.begin("one"), "an answer ends it")
}

// Six owners whose memory never answers stop nobody else's readings.
func TestOthersMemoryNeverAnswers(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPatience(func() time.Time { return now })
	hang := func(owner int) {
		require.NoError(t, p.begin(fmt.Sprint(owner)))
		p.hangs(fmt.Sprint(owner)) // and its child never ends
	}
	for owner := range usualChildren {
		hang(owner)
	}
	for range 100 {
		require.NoError(t, p.begin("honest"))
		p.answered("honest", time.Millisecond)
		now = now.Add(time.Minute)
	}
	for owner := usualChildren; owner < maxChildren; owner++ {
		hang(owner)
	}
	require.ErrorIs(t, p.begin("honest"), hangs.ErrOthers, "and it is not said that its own does not answer")
	p.ended("0")
	require.NoError(t, p.begin("honest"))
}

// Whoever they are, no more children stand still than there may be, and no more owners are remembered.
func TestPatienceByChurn(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPatience(func() time.Time { return now })
	for n := range maxChildren {
		require.NoError(t, p.begin(fmt.Sprint(n)))
		p.hangs(fmt.Sprint(n)) // and its child never ends
	}
	require.ErrorIs(t, p.begin("one more"), hangs.ErrOthers)
	p.ended("0")
	for n := maxChildren; n < 10_000; n++ {
		owner := fmt.Sprint(n)
		require.NoError(t, p.begin(owner))
		p.answered(owner, time.Second)
		require.LessOrEqual(t, len(p.histories), maxHistories)
	}
	require.Equal(t, maxChildren-1, p.children.Taken())
	for n := 1; n < maxChildren; n++ {
		require.Contains(t, p.histories, fmt.Sprint(n), "those with a child are not forgotten")
	}
}
