package losses

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestTrace(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	tick := func(n int) time.Time { return start.Add(time.Duration(n) * 10 * time.Millisecond) }
	tr := trace{}
	require.Nil(t, tr.take(), "nothing was sampled")
	for i := range 5 {
		tr.observe(tick(i), 0)
	}
	tr.observe(tick(5), 3)
	tr.observe(tick(6), 3)
	tr.drop(tick(6), 2)
	tr.drop(tick(6), 1)
	tr.observe(tick(7), 3)
	require.Equal(t, &model.QueueSamples{From: tick(0), To: tick(7), Runs: []model.QueueRun{
		{},
		{At: 50 * time.Millisecond, Length: 3},
		{At: 60 * time.Millisecond, Length: 3, Dropped: 3},
	}}, tr.take())
	tr.observe(tick(8), 4)
	require.Len(t, tr.take().Runs, 4, "a second is kept")
	tr.observe(tick(108), 4)
	tr.observe(tick(109), 5)
	tr.take()
	require.Equal(t, &model.QueueSamples{From: tick(8), To: tick(109), Runs: []model.QueueRun{
		{Length: 4},
		{At: 1010 * time.Millisecond, Length: 5},
	}}, tr.take())
}

// A list reads the counters when it has its turn, at the time when it began: samples were made since.
func TestTraceGoesForward(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	ms := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	tr := trace{}
	tr.observe(ms(100), 5)
	tr.observe(ms(110), 6)
	tr.drop(ms(50), 2)
	tr.observe(ms(120), 6)
	tr.drop(ms(111), 1)
	tr.observe(ms(119), 4)
	require.Equal(t, &model.QueueSamples{From: ms(100), To: ms(120), Runs: []model.QueueRun{
		{Length: 5},
		{At: 10 * time.Millisecond, Length: 6, Dropped: 2},
		{At: 20 * time.Millisecond, Length: 6, Dropped: 1},
		{At: 20 * time.Millisecond, Length: 4},
	}}, tr.take())
}

// A thousand samples a second that all differ, and nobody who takes them: the array
// stays, and neither the longest queue nor a dropped packet is lost.
func TestTraceIsBounded(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	tr := trace{}
	const samples = 10_000
	allocations := testing.AllocsPerRun(1, func() {
		tr = trace{runs: tr.runs[:0]}
		for i := range samples {
			at := start.Add(time.Duration(i) * time.Millisecond)
			tr.observe(at, uint32(i%17))
			tr.drop(at, 1)
		}
	})
	require.Zero(t, allocations)
	got := tr.take()
	require.LessOrEqual(t, len(got.Runs), maxRuns)
	require.Equal(t, start, got.From)
	require.Equal(t, start.Add((samples-1)*time.Millisecond), got.To)
	dropped, longest, last := uint32(0), uint32(0), time.Duration(-1)
	for _, r := range got.Runs {
		dropped, longest = dropped+r.Dropped, max(longest, r.Length)
		require.Greater(t, r.At, last)
		last = r.At
	}
	require.Equal(t, uint32(samples), dropped)
	require.Equal(t, uint32(16), longest)
}

func TestPeaks(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	p := newPeaks(time.Minute)
	_, _, ok := p.highest(start)
	require.False(t, ok, "nothing was sampled")

	p.observe(start, 3)
	p.observe(start.Add(10*time.Millisecond), 101) // between two scrapes
	p.observe(start.Add(20*time.Millisecond), 0)
	for s := 1; s <= 59; s++ {
		p.observe(start.Add(time.Duration(s)*time.Second), 1)
		length, when, ok := p.highest(start.Add(time.Duration(s) * time.Second))
		require.True(t, ok)
		require.Equal(t, 101, length, "second %d", s)
		require.Equal(t, start.Add(10*time.Millisecond), when)
	}
	p.observe(start.Add(60*time.Second), 1)
	length, _, _ := p.highest(start.Add(60 * time.Second))
	require.Equal(t, 1, length, "the minute has passed")
	_, _, ok = p.highest(start.Add(time.Hour))
	require.False(t, ok, "nothing was sampled in the last minute")
}

func TestPeaksSinceTheLastTime(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	p := newPeaks(time.Minute)
	require.Zero(t, p.takeRecent())
	p.observe(start, 101)
	p.observe(start.Add(time.Millisecond), 3)
	require.Equal(t, 101, p.takeRecent())
	p.observe(start.Add(2*time.Millisecond), 3)
	require.Equal(t, 3, p.takeRecent(), "another look, another peak")
}

// Thousands of one namespace do not push out the few of another.
func TestRetainedInTurns(t *testing.T) {
	list := make([]uint64, 0, 1003)
	for range 1000 {
		list = append(list, 1)
	}
	list = append(list, 2, 2, 3)
	got := InTurns(list, func(n *uint64) (uint64, uint32) { return *n, 0 })
	require.Len(t, got, len(list))
	require.Equal(t, []uint64{1, 2, 3, 1, 2, 1, 1}, got[:7])
	type one struct{ netns, at uint64 }
	kept := InTurns([]one{{1, 9}, {1, 8}, {2, 7}, {1, 6}}, func(o *one) (uint64, uint32) { return o.netns, 0 })
	require.Equal(t, []one{{1, 9}, {2, 7}, {1, 8}, {1, 6}}, kept, "within a namespace the order stays")
	type theirs struct {
		netns uint64
		user  uint32
	}
	fair := InTurns([]theirs{{1, 0}, {1, 0}, {1, 0}, {2, 0}, {1, 7}}, func(o *theirs) (uint64, uint32) { return o.netns, o.user })
	require.Equal(t, []theirs{{1, 0}, {2, 0}, {1, 7}, {1, 0}, {1, 0}}, fair, "nor those of one user those of another")
}
