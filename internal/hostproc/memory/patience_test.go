package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPatience(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPatience(func() time.Time { return now })
	fails := func(owner string) { p.failed(owner); p.ended(owner) }

	require.True(t, p.begin("a"))
	require.False(t, p.begin("a"), "one child for each owner")
	require.True(t, p.begin("b"))
	p.answered("b", time.Millisecond)
	require.Len(t, p.histories, 1, "who is fast is forgotten")

	fails("a") // again a minute later, then after two
	for _, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		now = now.Add(wait - 1)
		require.False(t, p.begin("a"))
		now = now.Add(1)
		require.True(t, p.begin("a"))
		fails("a")
	}
	for range 100 {
		now = now.Add(time.Hour)
		require.True(t, p.begin("a"), "an hour at most")
		fails("a")
	}
	now = now.Add(time.Hour)
	require.True(t, p.begin("a"))
	p.answered("a", time.Millisecond)
	require.Empty(t, p.histories)
	require.Zero(t, p.children)
}

// Those that are slow and answer take a tenth of the time, all together.
func TestSlowAnswers(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPatience(func() time.Time { return now })
	var lost, all time.Duration
	for range 10_000 {
		for owner := range 50 {
			if name := fmt.Sprint(owner); p.begin(name) {
				now, all, lost = now.Add(400*time.Millisecond), all+400*time.Millisecond, lost+400*time.Millisecond
				p.answered(name, 400*time.Millisecond)
			}
		}
		require.True(t, p.begin("fast"), "who is not slow never waits")
		p.answered("fast", time.Millisecond)
		now, all = now.Add(10*time.Millisecond), all+10*time.Millisecond
	}
	require.Less(t, lost-50*400*time.Millisecond, all/10, "but for the first of each")
}

// Whoever they are, no more children stand still than there may be, and no more owners are remembered.
func TestPatienceByChurn(t *testing.T) {
	now := time.Unix(0, 0)
	p := newPatience(func() time.Time { return now })
	for n := range 10_000 {
		owner := fmt.Sprint(n)
		if n < 2*maxChildren {
			require.Equal(t, n < maxChildren, p.begin(owner))
			if n < maxChildren {
				p.failed(owner) // and its child never ends
			}
			continue
		}
		if n == 2*maxChildren {
			p.ended("0")
		}
		require.True(t, p.begin(owner))
		p.answered(owner, time.Second)
		require.LessOrEqual(t, len(p.histories), maxHistories)
	}
	require.Equal(t, maxChildren-1, p.children)
	for n := 1; n < maxChildren; n++ {
		require.Contains(t, p.histories, fmt.Sprint(n), "those with a child are not forgotten")
	}
}
