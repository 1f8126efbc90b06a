package incident

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	require.Equal(t, []Samples{{From: at(599.99).UnixMilli() - minute.Milliseconds(), To: at(599.99).UnixMilli(), Runs: []Run{{}}}}, got)
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
	whole := []Samples{
		{ms(0), ms(0.99), []Run{{}}},
		{ms(1), ms(1.99), []Run{{0, 3, 0}, {10, 101, 7}, {500, math.MaxUint32, 0}}},
		{ms(2), ms(2.99), []Run{{0, 5, 0}}},
		{ms(3.5), ms(3.99), []Run{{0, 5, 0}}},
	}
	require.Equal(t, whole, m.after(0))
	require.Equal(t, whole[2:], m.after(ms(1.99)))
	require.Equal(t, []Run{{0, 101, 0}, {399, math.MaxUint32, 0}}, m.after(ms(1.1))[0].Runs, "its drops were before")
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
	require.Equal(t, Run{0, 49, 0}, got[1].Runs[0])
	require.Equal(t, Run{500, 99, 1}, got[1].Runs[50])
}

func TestSamplesAsTheyAreWritten(t *testing.T) {
	s := Samples{From: 1_700_000_000_000, To: 1_700_000_000_990, Runs: []Run{{0, 3, 0}, {10, 101, 7}, {500, 100, 0}}}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `{"from":1700000000000,"to":1700000000990,"runs":[0,3,0,10,101,7,490,100,0]}`, string(text))
	var again Samples
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, s, again)
	for _, hostile := range []string{
		`{"from":1700000000000,"to":1700000000990,"runs":[]}`,
		`{"from":1700000000000,"to":1700000000990,"runs":[0,1]}`,
		`{"from":1700000000000,"to":1700000000990,"runs":[5,1,0]}`,
		`{"from":1700000000000,"to":1700000000990,"runs":[0,1,0,991,1,0]}`,
		`{"from":1700000000000,"to":1700000000990,"runs":[0,1,0,-1,1,0]}`,
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

func TestPointAsItIsWritten(t *testing.T) {
	p := Point{At: 1_700_000_000, Status: model.StatusLosing, Drops: 4, Cause: model.CauseMaxConnections, Peak: 7, Inside: -1, InFlight: 3, Used: [...]int8{100, 50, -1, 2}}
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.Equal(t, `[1700000000,3,4,7,-1,3,100,50,-1,2,"max_connections"]`, string(text))
	var again Point
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, p, again)
	require.Equal(t, p, p.pack().unpack(causes()))

	require.NoError(t, json.Unmarshal([]byte(`[1700000000,3,4,7,61]`), &again), "of the first recordings")
	old := unknownPoint(1_700_000_000)
	old.Status, old.Drops, old.Peak, old.Inside = model.StatusLosing, 4, 7, 61
	require.Equal(t, old, again)
	require.NoError(t, json.Unmarshal([]byte(`[1700000000,3,4,7,61,"slow_accept"]`), &again))
	old.Cause = model.CauseSlowAccept
	require.Equal(t, old, again)
}

func TestFilling(t *testing.T) {
	tick := func(n int) int64 { return int64(n) * 10 }
	tell := func(runs ...Run) *Story {
		return &Story{room: 21, Samples: []Samples{{From: at(0).UnixMilli(), To: at(10).UnixMilli(), Runs: runs}}}
	}
	require.Nil(t, tell(Run{}, Run{tick(3), 20, 0}).Filling(), "never full")
	require.Equal(t,
		"The first client waited in the empty accept queue at 22:13:20.200; the queue was full (21) at 22:13:20.500, 0.3 s later; the first packet was dropped at 22:13:20.600.",
		tell(Run{}, Run{tick(5), 3, 0}, Run{tick(10), 0, 0}, Run{tick(20), 1, 0}, Run{tick(50), 21, 0}, Run{tick(60), 21, 2}, Run{tick(90), 21, 5}).Filling().String())
	require.Equal(t, "The queue was full (21) at 22:13:20.000; the first packet was dropped at 22:13:20.000.",
		tell(Run{0, 21, 1}).Filling().String(), "nothing is known of the time before")
	require.Equal(t, "The queue was full (21) at 22:13:20.100; the first packet was dropped at 22:13:20.100.",
		tell(Run{}, Run{tick(10), 21, 1}).Filling().String(), "empty in one sample, full in the next")
	require.Equal(t, "The first packet was dropped at 22:13:20.100.",
		tell(Run{}, Run{tick(10), 0, 1}, Run{tick(20), 21, 4}).Filling().String(), "full between two samples, or not full at all")
	full := tell(Run{}, Run{tick(10), 2, 0}, Run{tick(20), 21, 0}, Run{tick(30), 2, 0}, Run{tick(40), 21, 0}).Filling()
	require.Equal(t, at(0.2).UnixMilli(), full.Full.UnixMilli(), "for the first time, where nothing was dropped")
}

func TestWhatWasFullFirst(t *testing.T) {
	began := at(60)
	s := &Story{Header: Header{Began: began}}
	for i := range int64(90) {
		p := unknownPoint(at(0).Unix() + i)
		p.Used = [...]int8{int8(min(100, i)), 100, 3, -1}
		if i == 30 {
			p.Used[1] = 99
		}
		if i >= 65 {
			p.Used[0] = 100
		}
		s.Points = append(s.Points, p)
	}
	require.Equal(t, []string{"all threads were busy from 22:13:51", "all of maxConnections were in use from 22:14:25"}, s.filled())
	s.Points = s.Points[31:]
	require.Equal(t, "all threads were busy when the recording begins", s.filled()[0])
}
