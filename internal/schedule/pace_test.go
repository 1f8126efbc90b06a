package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// In trouble the readings come at once and then fewer and fewer; what is calm is
// read as often as it is cheap.
func TestPace(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	p := pace{gap: troubleGap}
	require.Equal(t, now, p.due(now, false, time.Second, 1), "never read")
	p.began(now, 100*time.Microsecond, false)
	require.Equal(t, now.Add(time.Second), p.due(now, false, time.Second, 1), "cheap")
	require.Equal(t, now.Add(5*time.Second), p.due(now, false, time.Second, 20), "one of several: its waking up costs more than itself")
	require.Equal(t, now.Add(calmRest), p.due(now, false, time.Second, 100), "one of many")
	require.Equal(t, now.Add(20*time.Second), p.due(now, false, time.Second, 280), "they would take 1.4 % of a core")
	require.Equal(t, now.Add(longestRest), p.due(now, false, time.Second, 10_000))

	now = now.Add(time.Minute)
	var gaps []time.Duration
	for range 6 {
		due := p.due(now, true, time.Second, 1)
		gaps = append(gaps, due.Sub(p.last))
		now = later(due, now)
		p.began(now, 10*time.Millisecond, true)
	}
	require.Equal(t, []time.Duration{100, 200, 400, 800, 1000, 1000}, millis(gaps))
	p.due(now.Add(troubleOver+time.Second), true, time.Second, 1)
	require.Equal(t, troubleGap, p.gap, "another trouble")

	p.began(now, 600*time.Millisecond, true)
	require.Equal(t, now.Add(20*time.Second), p.paid(1), "a walk through a million sockets, with nothing saved up")
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func millis(list []time.Duration) []time.Duration {
	out := make([]time.Duration, len(list))
	for i, d := range list {
		out[i] = time.Duration(d.Milliseconds())
	}
	return out
}

// Calm readings wait for CPU time, and the debt of trouble is bounded.
func TestBucket(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	b := newBucket(now)
	require.Zero(t, b.fill(now, 0), "a start is paid for by nobody: nothing is saved up for the calm")
	b.spend(10 * time.Second)
	require.Equal(t, 10*time.Second, b.total())
	const least = -capacity - reserve
	require.Equal(t, least, b.fill(now, 0), "not for minutes")
	now = now.Add(10 * time.Second)
	require.Equal(t, least+200*time.Millisecond, b.fill(now, 0), "two per cent of a core")
	now = now.Add(10 * time.Second)
	require.Equal(t, least+300*time.Millisecond, b.fill(now, 100*time.Millisecond), "less what the others took")
	now = now.Add(10 * time.Second)
	require.Equal(t, least+340*time.Millisecond, b.fill(now, time.Hour), "and a little in any case")
	require.Equal(t, capacity-reserve, b.fill(now.Add(time.Hour), time.Hour))
}

// What is not there any more is forgotten: pods come and go.
func TestPacesAreForgotten(t *testing.T) {
	ps := make(paces[int])
	for key := range 5 {
		ps.of(key).cost = time.Duration(key)
	}
	ps.retain(5, func(int) bool { return false })
	require.Len(t, ps, 5, "no more than are watched")
	ps.retain(2, func(key int) bool { return key > 2 })
	require.Len(t, ps, 2)
	require.Equal(t, time.Duration(4), ps.of(4).cost)
}

// A process that was never read is read now and then though no CPU time is saved up, one that is known
// is not.
func TestFirstReadingsOverdraw(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tasks := &tasks{}
	require.True(t, tasks.mayOverdraw(&pace{}, now))
	require.False(t, tasks.mayOverdraw(&pace{}, now.Add(firstGap/2)), "another one so soon")
	require.False(t, tasks.mayOverdraw(&pace{last: now}, now.Add(time.Minute)))
	require.True(t, tasks.mayOverdraw(&pace{}, now.Add(time.Minute)))
}

// Who has a million listeners, and opens and closes some, has them listed in a tenth of the time.
func TestListGap(t *testing.T) {
	for cost, want := range map[time.Duration]time.Duration{
		time.Millisecond: soonest, 10 * time.Millisecond: 500 * time.Millisecond, 50 * time.Millisecond: time.Second,
		90 * time.Millisecond: time.Second, 500 * time.Millisecond: 5 * time.Second,
	} {
		require.Equal(t, want, listGap(cost, changePart), "%v", cost)
	}
	require.Equal(t, 200*time.Millisecond, listGap(10*time.Millisecond, arrivalsPart))
}

// A listener that has closed is found within seconds of its return, however long a list takes.
func TestListRest(t *testing.T) {
	const ms = time.Millisecond
	for cost, want := range map[time.Duration]struct{ calm, unnamed, returning time.Duration }{
		3 * ms:   {2 * time.Second, time.Second, 150 * ms},
		50 * ms:  {calmRest, time.Second, time.Second},
		300 * ms: {calmRest, 3 * time.Second, 3 * time.Second},
	} {
		gap := listGap(cost, changePart)
		require.Equal(t, want.calm, listRest(cost, gap, false, false), "%v", cost)
		require.Equal(t, want.unnamed, listRest(cost, gap, true, false), "%v", cost)
		require.Equal(t, want.returning, listRest(cost, gap, false, true), "%v", cost)
	}
}

// Readings of hundreds of namespaces in trouble, with nothing saved up, take what those of a few do.
func TestTroublesOfManyNamespaces(t *testing.T) {
	const each = 10 * time.Millisecond
	part := func(troubles int) float64 {
		begin := time.Unix(1_000_000, 0)
		all := make([]pace, troubles)
		var spent time.Duration
		for now := begin; now.Before(begin.Add(time.Minute)); now = now.Add(10 * time.Millisecond) {
			for i := range all {
				p := &all[i]
				due := p.due(now, true, 0, troubles)
				if paid := p.paid(troubles); paid.After(due) {
					due = paid
				}
				if !due.After(now) {
					p.began(now, each, true)
					spent += each
				}
			}
		}
		return spent.Seconds() / 60
	}
	require.InDelta(t, 0.01, part(1), 0.005, "once a second")
	require.InDelta(t, 0.04, part(4), 0.02)
	require.InDelta(t, 0.12, part(300), 0.06)
}

// Who gives up is followed each second as long as there is CPU time; then all such namespaces together take less than is saved up
// in any case.
func TestFollow(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	p := pace{gap: troubleGap}
	p.began(now, 12*time.Millisecond, false)
	require.Equal(t, now.Add(time.Second), p.follow(true, 30))
	require.Equal(t, now.Add(6*time.Second), p.follow(false, 1))
	require.Equal(t, now.Add(180*time.Second), p.follow(false, 30))
	require.Less(t, followPart, leastCPUPart)
	p.began(now, 0, false)
	require.Equal(t, now.Add(time.Second), p.follow(false, 0))
}
