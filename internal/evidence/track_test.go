package evidence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	. "github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// reads judges readings that are taken so far apart.
func reads(track *Track, from, every time.Duration, n int, changes ...func(*Reading)) (last Judgement) {
	for i := range n {
		last = track.Judge(at(from+time.Duration(i)*every, changes...), Phases{}, causes.OfMoment)
	}
	return last
}

// Readings closer together than two that prove the latch need: the first of the
// sleep is remembered.
func TestTrackRemembersTheSleep(t *testing.T) {
	var track Track
	require.True(t, reads(&track, 0, 5*ms, 4, parked).Pending)
	require.Equal(t, model.CauseMaxConnections, reads(&track, 20*ms, 5*ms, 1, parked).Cause)

	track = Track{}
	require.Equal(t, model.CauseAcceptQueue, reads(&track, 0, 20*ms, 50, parked, noSafepoints).Cause)
	j := reads(&track, time.Second, 20*ms, 1, parked, noSafepoints)
	require.Equal(t, model.CauseMaxConnections, j.Cause)
	require.True(t, j.Weak)

	track = Track{}
	require.Equal(t, model.CauseAcceptQueue, reads(&track, 0, 100*ms, 20, does(Asleep)).Cause)
	require.Equal(t, model.CauseMaxConnections, reads(&track, 2*time.Second, 100*ms, 1, does(Asleep)).Cause)
}

// A safepoint within a long sleep is no reason to doubt it for good.
func TestTrackAfterASafepoint(t *testing.T) {
	var track Track
	require.Equal(t, model.CauseMaxConnections, reads(&track, 0, 100*ms, 3, parked).Cause)
	require.Equal(t, model.CauseAcceptQueue, reads(&track, 300*ms, 100*ms, 1, parked, stood(1, ms)).Cause)
	require.Equal(t, model.CauseMaxConnections, reads(&track, 400*ms, 100*ms, 1, parked, stood(1, ms)).Cause)
}

// Nor is a sleep that began within one, where it must be a long one.
func TestTrackOfASleepFromWithinASafepoint(t *testing.T) {
	var track Track
	require.Equal(t, model.CauseAcceptQueue, reads(&track, 0, 20*ms, 2, parked, old, standsFor(30*ms)).Cause)
	require.Equal(t, model.CauseAcceptQueue, reads(&track, 40*ms, 20*ms, 50, parked, old, stood(0, 60*ms)).Cause)
	require.Equal(t, model.CauseMaxConnections, reads(&track, 1040*ms, 20*ms, 1, parked, old, stood(0, 60*ms)).Cause)
}

// A thread that is woken and parked again stands where it stood.
func TestTrackForgetsTheSleepBefore(t *testing.T) {
	var track Track
	require.Equal(t, model.CauseMaxConnections, reads(&track, 0, 100*ms, 3, parked).Cause)
	woken := acceptor(func(a *Acceptor) { a.Switches++ })
	require.Equal(t, model.CauseAcceptQueue, reads(&track, 300*ms, 100*ms, 1, parked, woken).Cause)
	require.Equal(t, model.CauseMaxConnections, reads(&track, 400*ms, 100*ms, 1, parked, woken).Cause)
}

// Rates are taken over about a second, however close the readings are, and not
// from a calm long ago.
func TestTrackRates(t *testing.T) {
	var track Track
	reads(&track, -time.Minute, time.Second, 3, limited(CPULimit{}))
	for i := range uint64(10) {
		j := reads(&track, time.Duration(i)*100*ms, ms, 1, limited(CPULimit{
			Periods: 1000 + i, Throttled: 10 + i, Withheld: time.Duration(i) * 90 * ms, Used: time.Hour + time.Duration(i)*10*ms,
		}))
		want := model.CauseCPUThrottled
		if i == 0 {
			want = model.CauseSlowAccept
		}
		require.Equal(t, want, j.Cause, "%d", i)
	}
}

// TestStarvedByLimit: whether an acceptor that lacks a CPU lacks quota is seen in the time in which it waited: one period
// of many in which the process was throttled, some time before, is none of it.
func TestStarvedByLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		throttledAt int // of 15 readings, one a period
		want        model.Cause
	}{
		"while it waited": {14, model.CauseCPUThrottled},
		"before":          {5, model.CauseCPUSaturated},
		"never":           {15, model.CauseCPUSaturated},
	} {
		var track Track
		var last Judgement
		var total CPULimit
		for i := range 15 {
			total.Periods, total.Used = total.Periods+1, total.Used+50*ms
			if i == tt.throttledAt {
				total.Throttled, total.Withheld = total.Throttled+1, total.Withheld+70*ms
			}
			last = reads(&track, time.Duration(i)*100*ms, ms, 1, limited(total), acceptor(func(a *Acceptor) {
				a.Ran += uint64(i)
				if i == 14 {
					a.RunDelay = 60 * ms
				}
			}))
		}
		require.Equal(t, tt.want, last.Cause, name)
	}
}

// TestTurnover: clients wait, and each walk finds as many connections held as the one before, and others:
// they are taken only as others end, whatever the limit is.
func TestTurnover(t *testing.T) {
	type walk struct {
		held, queued int
		set          uint64
	}
	steady := func(n int, others ...uint64) (out []walk) {
		set := uint64(0)
		for i := range n {
			if i < len(others) {
				set = others[i]
			}
			out = append(out, walk{20, 3, set})
		}
		return out
	}
	for name, tt := range map[string]struct {
		walks   []walk
		does    Activity
		partial bool
		nio2    bool
		want    int
	}{
		"workers accept":                 {walks: steady(6, 1, 2, 3, 4, 5, 6), does: Unknown, nio2: true},
		"others in each":                 {walks: steady(6, 1, 2, 3, 4, 5, 6), does: Unknown, want: 20},
		"one is free for a moment":       {walks: append(steady(4, 1, 2, 3, 4), walk{19, 3, 5}, walk{20, 3, 6}), does: Unknown, want: 20},
		"others twice":                   {walks: steady(6, 1, 1, 2, 2, 3), does: Asleep, want: 20},
		"others once":                    {walks: steady(6, 1, 1, 1, 2), does: Asleep},
		"too few walks":                  {walks: steady(3, 1, 2, 3), does: Asleep},
		"the same stay":                  {walks: steady(8, 1), does: Asleep},
		"more and more":                  {walks: []walk{{10, 3, 0}, {12, 3, 2}, {14, 3, 4}, {16, 3, 6}, {18, 3, 8}, {20, 3, 10}, {22, 3, 12}}, does: Asleep},
		"the queue empties in between":   {walks: append(steady(3, 1, 2, 3), walk{20, 0, 4}, walk{20, 3, 5}, walk{20, 3, 6}, walk{20, 3, 7}), does: Asleep},
		"the acceptor lacks a CPU":       {walks: steady(8, 1, 2, 3, 4, 5, 6, 7, 8), does: Runnable},
		"not each connection is counted": {walks: steady(8, 1, 2, 3, 4, 5, 6, 7, 8), does: Asleep, partial: true},
		"most walks find fewer":          {walks: []walk{{20, 3, 0}, {19, 3, 1}, {19, 3, 2}, {20, 3, 3}, {19, 3, 4}, {19, 3, 5}, {19, 3, 6}, {20, 3, 7}, {20, 3, 8}}, does: Asleep},
	} {
		var track Track
		var last Judgement
		for i, w := range tt.walks {
			r := at(time.Duration(i)*180*ms, does(tt.does), func(r *Reading) { r.Queued = Known(w.queued) },
				acceptor(func(a *Acceptor) { a.Switches += uint64(i) }))
			last = track.Judge(r, Phases{Walked: true, SlotsInUse: w.held, Set: w.set, Partial: tt.partial, ByWorkers: tt.nio2}, causes.OfMoment)
		}
		require.Equal(t, tt.want, last.Turned, name)
		if tt.want > 0 {
			require.Equal(t, model.CauseMaxConnections, last.Cause, name)
			require.Equal(t, StrengthPhases, last.Strength, name)
		}
	}
}

func TestStandstill(t *testing.T) {
	var s Standstill
	started := epoch.Add(-time.Minute)
	counters := func(begun int64, ran, stood time.Duration) Counters {
		return Counters{Begun: begun, Ran: ran, Stood: stood, Started: started}
	}
	next := func(after time.Duration, c Counters) Safepoint { return s.Next(epoch.Add(after), c) }

	require.Equal(t, Safepoint{Begun: 9, Stood: time.Second, Unclear: true}, next(0, counters(9, 58*time.Second, time.Second)))
	// One begins at 10 ms and is under way at 30 ms and at 60 ms.
	open := counters(10, 59*time.Second+10*ms, time.Second)
	got := next(30*ms, open)
	require.True(t, got.UnderWay)
	require.InDelta(t, 20*ms, got.Lasted, float64(10*ms))
	later := next(60*ms, open)
	require.True(t, later.UnderWay)
	require.Equal(t, 30*ms, later.Lasted-got.Lasted)
	// It ends after 70 ms in all.
	state := func(s Safepoint) [2]bool { return [2]bool{s.UnderWay, s.Unclear} }
	require.Equal(t, [2]bool{false, false}, state(next(100*ms, counters(10, 59*time.Second+10*ms, time.Second+70*ms))))
	// A whole one between two readings; two; one more that begins; its end.
	require.Equal(t, [2]bool{false, false}, state(next(200*ms, counters(11, 59*time.Second+50*ms, time.Second+75*ms))))
	require.Equal(t, [2]bool{false, true}, state(next(300*ms, counters(13, 59*time.Second+90*ms, time.Second+80*ms))))
	require.Equal(t, [2]bool{false, true}, state(next(310*ms, counters(13, 59*time.Second+90*ms, time.Second+80*ms))))
	require.Equal(t, [2]bool{true, false}, state(next(400*ms, counters(14, 59*time.Second+190*ms, time.Second+80*ms))))
	require.Equal(t, [2]bool{false, false}, state(next(500*ms, counters(14, 59*time.Second+190*ms, time.Second+90*ms))))
	// One that is under way ends, and another may have begun.
	next(600*ms, counters(15, 59*time.Second+290*ms, time.Second+90*ms))
	require.Equal(t, [2]bool{false, true}, state(next(700*ms, counters(16, 59*time.Second+390*ms, time.Second+95*ms))))
	// A collector says so itself, also at the first reading.
	collecting := open
	collecting.Collecting = true
	s = Standstill{}
	got = next(40*ms, collecting)
	require.True(t, got.UnderWay)
	require.Equal(t, 30*ms, got.Lasted)
}
