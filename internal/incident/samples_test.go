package incident

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func sampled(from, to float64, runs ...model.QueueRun) *model.QueueSamples {
	return &model.QueueSamples{From: at(from), To: at(to), Runs: runs}
}

func TestCalmMinuteOfSamplesIsSomeBytes(t *testing.T) {
	var m minuteOf
	for i := range 600 {
		m.add(sampled(float64(i), float64(i)+0.99, model.QueueRun{}))
	}
	require.Len(t, m.parts, 1)
	require.Len(t, m.parts[0].runs, 3)
	got := m.after(0)
	require.Equal(t, []recording.Samples{{From: at(599.99).UnixMilli() - minute.Milliseconds(), To: at(599.99).UnixMilli(), Runs: []recording.Run{{}}}}, got)
}

func TestSamplesOfTheLastMinute(t *testing.T) {
	var m minuteOf
	busy := []model.QueueRun{{Length: 3}, {At: 10 * time.Millisecond, Length: 101, Dropped: 7}, {At: 500 * time.Millisecond, Length: math.MaxUint32}}
	m.add(nil)
	require.Empty(t, m.after(0))
	m.add(sampled(0, 0.99, model.QueueRun{}))
	m.add(sampled(1, 1.99, busy...))
	m.add(sampled(2, 2.99, model.QueueRun{Length: 5}))
	m.add(sampled(3.5, 3.99, model.QueueRun{Length: 5})) // half a second without a sample
	ms := func(s float64) int64 { return at(s).UnixMilli() }
	whole := []recording.Samples{
		{From: ms(0), To: ms(0.99), Runs: []recording.Run{{}}},
		{From: ms(1), To: ms(1.99), Runs: []recording.Run{{At: 0, Length: 3, Dropped: 0}, {At: 10, Length: 101, Dropped: 7}, {At: 500, Length: math.MaxUint32, Dropped: 0}}},
		{From: ms(2), To: ms(2.99), Runs: []recording.Run{{At: 0, Length: 5, Dropped: 0}}},
		{From: ms(3.5), To: ms(3.99), Runs: []recording.Run{{At: 0, Length: 5, Dropped: 0}}},
	}
	require.Equal(t, whole, m.after(0))
	require.Equal(t, whole[2:], m.after(ms(1.99)))
	require.Equal(t, []recording.Run{{At: 0, Length: 101, Dropped: 0}, {At: 399, Length: math.MaxUint32, Dropped: 0}}, m.after(ms(1.1))[0].Runs, "its drops were before")
	require.Empty(t, m.after(ms(3.99)))
	m.add(sampled(61.5, 62, busy...))
	require.Equal(t, whole[2:], m.after(0)[:2], "a minute is kept")
}

// A snapshot has the samples of about a second, so that one of two may be missed.
func TestSamplesThatOverlapAreKeptOnce(t *testing.T) {
	var m minuteOf
	var runs []model.QueueRun
	for i := range 100 {
		runs = append(runs, model.QueueRun{At: time.Duration(i) * 10 * time.Millisecond, Length: uint32(i), Dropped: 1})
	}
	m.add(sampled(0, 0.99, runs...))
	m.add(sampled(0, 0.99, runs...))
	m.add(sampled(0.5, 1.49, runs...))
	got := m.after(0)
	require.Len(t, got, 2)
	require.Equal(t, at(0.99).UnixMilli(), got[1].From)
	dropped := uint32(0)
	for _, s := range got {
		for _, r := range s.Runs {
			dropped += r.Dropped
		}
	}
	require.Equal(t, uint32(150), dropped)
	require.Equal(t, recording.Run{At: 0, Length: 49, Dropped: 0}, got[1].Runs[0])
	require.Equal(t, recording.Run{At: 500, Length: 99, Dropped: 1}, got[1].Runs[50])
}

func TestSamplesAsTheyAreWritten(t *testing.T) {
	s := recording.Samples{From: 1_700_000_000_000, To: 1_700_000_000_990, Runs: []recording.Run{{At: 0, Length: 3, Dropped: 0}, {At: 10, Length: 101, Dropped: 7}, {At: 500, Length: 100, Dropped: 0}}}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `{"from":1700000000000,"to":1700000000990,"runs":[0,3,0,10,101,7,490,100,0]}`, string(text))
	var again recording.Samples
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, s, again)
	for _, hostile := range []string{
		`{"from":1700000000000,"to":1700000000990,"runs":[]}`,
		`{"from":1700000000000,"to":1700000000990,"runs":[0,1]}`,
		`{"from":1700000000000,"to":1700000000990,"runs":[5,1,0]}`,
		`{"from":1700000000000,"to":1700000000990,"runs":[0,-1,0]}`,
		`{"from":1700000000000,"to":1700000000990,"runs":[0,1,4294967296]}`,
		`{"from":1700000000000,"to":1600000000990,"runs":[0,1,0]}`,
		`{"from":-9223372036854775807,"to":9223372036854775807,"runs":[0,1,0]}`,
		`{"from":0,"to":0,"runs":[0,1,0]}`,
		`{"from":1,"to":9000000000000,"runs":[0,1,0]}`,
	} {
		require.Error(t, json.Unmarshal([]byte(hostile), &again), hostile)
	}
}

// Agents have written the drops that a list found at the time when it began, before samples that were made since.
func TestSamplesOutOfOrder(t *testing.T) {
	var s recording.Samples
	require.NoError(t, json.Unmarshal([]byte(`{"from":1700000000000,"to":1700000000990,"runs":[0,1,0,900,2,0,-364,2,7,500,3,0,9223372036854775807,4,0,-9223372036854775808,5,0]}`), &s))
	require.Equal(t, []recording.Run{
		{Length: 1}, {At: 900, Length: 2}, {At: 900, Length: 2, Dropped: 7}, {At: 990, Length: 3}, {At: 990, Length: 4}, {At: 990, Length: 5},
	}, s.Runs)
}

// The first frame has a minute of samples, also of a queue that changes with each of a thousand a second.
func TestMinuteOfSamplesIsReadAgain(t *testing.T) {
	for _, interval := range []int{1, 2, 5, 10} { // milliseconds
		for _, published := range []int{100, 300, 1000} {
			a := losses.NewAccount(model.ListenerID{}, time.Minute)
			var m minuteOf
			for i := 0; i < 61_000; i += interval {
				a.Observe(losses.Queue{At: at(float64(i) / 1000), Length: uint32(i / interval % 2), Limit: 5})
				if i%published == 0 {
					m.add(a.TakeSamples())
				}
			}
			kept := m.after(0)
			text, err := json.Marshal(kept)
			require.NoError(t, err)
			var again []recording.Samples
			require.NoError(t, json.Unmarshal(text, &again))
			require.Equal(t, kept, again)
			runs := 0
			for _, s := range kept {
				runs += len(s.Runs)
			}
			require.Greater(t, runs, 3000)
			require.True(t, recording.Measured(slices.Concat(text, text[:len(text)/3])), "%d runs: room for the rest of the frame, too", runs)
		}
	}
}

func TestPointAsItIsWritten(t *testing.T) {
	p := recording.Point{At: 1_700_000_000, Status: model.StatusLosing, Drops: 4, Cause: model.CauseMaxConnections, Peak: 7, Inside: -1, InFlight: 3, Used: [...]int8{100, 50, -1, 2}}
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.Equal(t, `[1700000000,3,4,7,-1,3,100,50,-1,2,"max_connections"]`, string(text))
	var again recording.Point
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, p, again)
	require.Equal(t, p, packPoint(p).unpack(causes()))

	require.NoError(t, json.Unmarshal([]byte(`[1700000000,3,4,7,61]`), &again), "of the first recordings")
	old := recording.UnknownPoint(1_700_000_000)
	old.Status, old.Drops, old.Peak, old.Inside = model.StatusLosing, 4, 7, 61
	require.Equal(t, old, again)
	require.NoError(t, json.Unmarshal([]byte(`[1700000000,3,4,7,61,"slow_accept"]`), &again))
	old.Cause = model.CauseSlowAccept
	require.Equal(t, old, again)
}

func TestFilling(t *testing.T) {
	tick := func(n int) int64 { return int64(n) * 10 }
	tell := func(runs ...recording.Run) *story.Story {
		return &story.Story{Room: 21, Samples: []recording.Samples{{From: at(0).UnixMilli(), To: at(10).UnixMilli(), Runs: runs}}}
	}
	require.Nil(t, tell(recording.Run{}, recording.Run{At: tick(3), Length: 20, Dropped: 0}).Filling(), "never full")
	require.Equal(t,
		"The first client waited in the empty accept queue at 22:13:20.200; the queue was full (21) at 22:13:20.500, 0.3 s later; the first packet was dropped at 22:13:20.600.",
		tell(recording.Run{}, recording.Run{At: tick(5), Length: 3, Dropped: 0}, recording.Run{At: tick(10), Length: 0, Dropped: 0}, recording.Run{At: tick(20), Length: 1, Dropped: 0}, recording.Run{At: tick(50), Length: 21, Dropped: 0}, recording.Run{At: tick(60), Length: 21, Dropped: 2}, recording.Run{At: tick(90), Length: 21, Dropped: 5}).Filling().String())
	require.Equal(t, "The queue was full (21) at 22:13:20.000; the first packet was dropped at 22:13:20.000.",
		tell(recording.Run{At: 0, Length: 21, Dropped: 1}).Filling().String(), "nothing is known of the time before")
	require.Equal(t, "The queue was full (21) at 22:13:20.100; the first packet was dropped at 22:13:20.100.",
		tell(recording.Run{}, recording.Run{At: tick(10), Length: 21, Dropped: 1}).Filling().String(), "empty in one sample, full in the next")
	require.Equal(t, "The first packet was dropped at 22:13:20.100.",
		tell(recording.Run{}, recording.Run{At: tick(10), Length: 0, Dropped: 1}, recording.Run{At: tick(20), Length: 21, Dropped: 4}).Filling().String(), "full between two samples, or not full at all")
	full := tell(recording.Run{}, recording.Run{At: tick(10), Length: 2, Dropped: 0}, recording.Run{At: tick(20), Length: 21, Dropped: 0}, recording.Run{At: tick(30), Length: 2, Dropped: 0}, recording.Run{At: tick(40), Length: 21, Dropped: 0}).Filling()
	require.Equal(t, at(0.2).UnixMilli(), full.Full.UnixMilli(), "for the first time, where nothing was dropped")
}
