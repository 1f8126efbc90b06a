package incident

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A hundred incidents of random kinds, the agent killed at a random moment, most
// of them in the midst of a record: every record that was whole is read, and every
// verdict judged again is the recorded one.
func TestLongHundredIncidentsKilledAtAnyMoment(t *testing.T) {
	worst := make(map[model.Status]int)
	for seed := range uint64(100) {
		dir := t.TempDir()
		d, tracker := newDirect(t, dir, someLimits())
		v := newLife(seed)
		for range 3 + v.random.IntN(4) {
			tracker.record(v.next(calm), d)
		}
		require.Empty(t, d.shelf.list(), "nothing is recorded of a calm listener")
		kind := 1 + trouble(v.random.IntN(int(kinds)-2))
		for range 5 + v.random.IntN(12) {
			if v.random.IntN(12) == 0 { // the server is killed, and started again
				v.pid++
				tracker.record(v.next(absent), d)
			}
			tracker.record(v.next(kind), d)
			if v.random.IntN(6) == 0 {
				kind = trouble(v.random.IntN(int(kinds)))
			}
		}
		if len(d.frames) == 0 {
			continue // trouble that one snapshot shows only
		}
		summary := d.shelf.list()[0]
		worst[summary.Status]++
		file := filepath.Join(dir, nameOf(summary.ID))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		whole := len(d.frames)
		if last := lines[len(lines)-1]; v.random.IntN(4) > 0 { // as if the write had not been done
			text = text[:len(text)-1-v.random.IntN(len(last))]
			whole--
		}
		require.NoError(t, os.WriteFile(file, text, 0o600))
		d.close() // what a killed process holds is released

		r, frames := readAll(t, bytes.NewReader(text))
		require.Nil(t, r.End)
		require.Zero(t, r.Damaged)
		require.Len(t, frames, whole, "seed %d", seed)
		for i, f := range frames {
			want := *d.frames[i]
			want.Listener.Totals = model.Totals{}
			requireSame(t, &want, f)
			again, same, judged := f.Replay()
			require.True(t, judged)
			require.True(t, same, "seed %d, frame %d: %+v\nis not\n%+v", seed, i, again, f.Listener.Verdict)
		}
		if whole == 0 {
			continue
		}
		d, _ = newDirect(t, dir, someLimits()) // the next start
		found := d.shelf.list()
		require.Len(t, found, 1)
		require.Equal(t, recording.EndInterrupted, found[0].Reason)
		require.Equal(t, whole, found[0].Frames)
		require.Equal(t, frames[whole-1].At, found[0].LastSeen)
		story := d.story(t, found[0].ID)
		require.Equal(t, found[0].Status, story.Summary.Status)
		d.close()
	}
	require.GreaterOrEqual(t, worst[model.StatusLosing], 20)
	require.GreaterOrEqual(t, worst[model.StatusDown]+worst[model.StatusSaturated], 5)
}

// requireSame compares as what is written: nil and empty lists are different,
// times are moments.
func requireSame(t *testing.T, want, got *recording.Frame) {
	t.Helper()
	a, err := new(recording.Encoder).Frame(want)
	require.NoError(t, err)
	b, err := new(recording.Encoder).Frame(got)
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
}

func TestIncidentFromTheMinuteBeforeToTheMinuteAfter(t *testing.T) {
	d, tracker := newDirect(t, t.TempDir(), someLimits())
	v := newLife(1)
	v.now = time.Now().Round(0)
	v.seconds(100, calm, tracker, d)
	began := v.now
	v.seconds(30, connectionsFull, tracker, d)
	v.seconds(90, calm, tracker, d)
	require.Empty(t, tracker.cases)
	s := d.shelf.list()[0]
	require.Equal(t, recording.EndOver, s.Reason)
	require.Equal(t, model.StatusLosing, s.Status)
	require.Equal(t, model.CauseMaxConnections, s.Cause)
	require.Equal(t, v.total, s.Dropped)
	story := d.story(t, s.ID)
	require.False(t, story.Torn)
	require.Equal(t, s, story.Summary)
	require.Equal(t, v.total, story.Counted.Packets())
	require.Equal(t, 21, story.Peak)
	require.InDelta(t, 60, began.Unix()-story.Points[0].At, 5, "the minute before")
	samples := story.Samples
	require.InDelta(t, 60_000, began.UnixMilli()-samples[0].From, 1500, "the minute before, by sample")
	require.InDelta(t, story.Summary.Ended.UnixMilli(), samples[len(samples)-1].To, 2500)
	for i := range samples[1:] {
		require.GreaterOrEqual(t, samples[i+1].From, samples[i].To, "none is there twice")
	}
	require.WithinDuration(t, began.Add(time.Second), story.Filling().Dropped, time.Second)
	calmed := story.Events[len(story.Events)-1]
	require.Equal(t, model.StatusOK, calmed.Status)
	require.InDelta(t, 60, story.Summary.Ended.Sub(calmed.At).Seconds(), 2, "the minute after")
	require.Equal(t, model.StatusLosing, story.Worst.Listener.Verdict.Status)
}

func TestListenerThatIsGoneEndsItsIncident(t *testing.T) {
	d, tracker := newDirect(t, "", someLimits())
	v := newLife(1)
	v.seconds(5, connectionsFull, tracker, d)
	v.seconds(5, closed, tracker, d) // the expected port takes the listener's place, and is of its incident
	require.Len(t, tracker.cases, 1)
	v.seconds(70, absent, tracker, d)
	require.Empty(t, tracker.cases)
	list := d.shelf.list()
	require.Len(t, list, 1)
	require.Equal(t, recording.EndClosed, list[0].Reason)
	require.Equal(t, model.StatusDown, list[0].Status)
}

// A port at which nothing has listened since the agent started may be of a server
// that is starting; one that was there is down at once.
func TestServerThatHasNotStarted(t *testing.T) {
	d, tracker := newDirect(t, "", someLimits())
	v := newLife(1)
	v.seconds(60, closed, tracker, d)
	require.Empty(t, tracker.cases)
	tracker.record(v.next(calm), d)
	tracker.record(v.next(closed), d)
	require.Len(t, tracker.cases, 1)
}

func TestServerThatNeverStarts(t *testing.T) {
	d, tracker := newDirect(t, "", someLimits())
	v := newLife(1)
	v.seconds(125, closed, tracker, d)
	require.Len(t, tracker.cases, 1)
}

func TestFramesThatFindNoRoomAreAGap(t *testing.T) {
	dir := t.TempDir()
	d, tracker := newDirect(t, dir, someLimits())
	v := newLife(3)
	for i := range 20 {
		d.full = i > 5 && i < 12
		tracker.record(v.next(connectionsFull), d)
	}
	in, err := d.open(d.shelf.list()[0].ID)
	require.NoError(t, err)
	r, frames := readAll(t, in)
	require.Zero(t, r.Damaged)
	require.Len(t, frames, len(d.frames))
	for _, f := range frames {
		_, same, _ := f.Replay()
		require.True(t, same)
	}
}

// The clock goes back by an hour: the incident continues, is recorded, and is not
// the first to be removed.
func TestClockSetBackInAnIncident(t *testing.T) {
	dir := t.TempDir()
	limits := someLimits()
	limits.Files = 3
	d, tracker := newDirect(t, dir, limits)
	v := newLife(4)
	v.now = time.Now().Round(0)
	for i := range 20 {
		if i == 10 {
			v.now = v.now.Add(-time.Hour)
			v.listener = nil
		}
		tracker.record(v.next(connectionsFull), d)
	}
	require.Len(t, d.frames, 20)
	for range 5 {
		v.seconds(80, calm, tracker, d)
		v.now = v.now.Add(-2 * time.Hour)
		v.listener = nil
		tracker.record(v.next(connectionsFull), d)
		tracker.record(v.next(connectionsFull), d)
	}
	list := d.shelf.list()
	require.Len(t, list, 3)
	for i, s := range list {
		n, ok := numberOf(s.ID)
		require.True(t, ok)
		require.Equal(t, 6-i, n, "the latest are kept, whatever their times")
	}
}

func TestLongIncidentIsThinnedAndBounded(t *testing.T) {
	d, tracker := newDirect(t, t.TempDir(), someLimits())
	v := newLife(5)
	v.seconds(500, connectionsFull, tracker, d)
	require.Less(t, len(d.frames), 120+45)
	story := d.story(t, d.shelf.list()[0].ID)
	require.InDelta(t, v.total, story.Counted.Packets(), 50*12, "as of the last frame")
	require.InDelta(t, v.total, story.Summary.Dropped, 150, "as of the last seconds")
	require.Greater(t, len(story.Points), 480)
	d.shelf.mu.Lock()
	size := d.shelf.entries[0].size
	d.shelf.mu.Unlock()
	t.Logf("500 seconds of losses are %d bytes, a frame %d", size, size/int64(len(d.frames)))
	require.Less(t, size, int64(recording.MaxRecording))
	last := story.Samples[len(story.Samples)-1].To
	require.InDelta(t, 120_000, last-story.Header.Began.UnixMilli(), 2500, "samples end after two minutes")
}

func TestRecorderWritesAndEnds(t *testing.T) {
	v := newLife(6)
	snap := v.next(connectionsFull)
	v.next(connectionsFull)
	r := NewRecorder(Options{Snapshot: func() *model.Snapshot { return snap }, Next: func() <-chan struct{} { return nil }, Log: quiet(), Now: time.Now, Version: "1.2.3"})
	r.Observe(v.next(connectionsFull))
	require.Equal(t, model.Incidents{Total: 1, Open: 1}, r.State())
	ctx, stop := testContext(t)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	require.Eventually(t, func() bool { l := r.List(); return len(l) == 1 && l[0].Frames > 0 }, time.Minute, time.Millisecond)
	stop()
	require.NoError(t, <-done)
	list := r.List()
	require.Equal(t, recording.EndStopped, list[0].Reason)
	in, err := r.Open(list[0].ID)
	require.NoError(t, err)
	story, err := story.Read(in)
	require.NoError(t, err)
	require.Equal(t, "1.2.3", story.Header.Version)
	_, err = r.Open("000002-20260102T030405Z-8080")
	require.ErrorIs(t, err, ErrUnknown)
	require.False(t, strings.Contains(list[0].ID, "/"))
}

// Two snapshots a second are recorded as two points of it; told, they are one, and
// no packet is counted twice.
func TestSecondsInParts(t *testing.T) {
	d, tracker := newDirect(t, t.TempDir(), someLimits())
	v := newLife(7)
	v.now = time.Now().Round(0)
	for range 60 {
		tracker.record(v.next(connectionsFull), d)
		v.now = v.now.Add(-time.Second / 2)
	}
	s := d.shelf.list()[0]
	require.InDelta(t, v.total, s.Dropped, 50, "all but those of the latest half second")
	require.WithinDuration(t, v.now, s.LastSeen, time.Second, "nothing is older than the latest snapshot")
	story := d.story(t, s.ID)
	require.Equal(t, s.Dropped, story.Summary.Dropped)
	var sum uint64
	for i, p := range story.Points {
		sum += uint64(p.Drops)
		require.True(t, i == 0 || p.At > story.Points[i-1].At, "one point a second")
	}
	require.Equal(t, s.Dropped, sum)
}

// As many incidents as are recorded at once, without a directory: each keeps its
// beginning, and together they stay small.
func TestManyIncidentsInMemoryShareItsRoom(t *testing.T) {
	d, tracker := newDirect(t, "", someLimits())
	var lives []*life
	for seed := range uint64(maxOpen) {
		lives = append(lives, newLife(seed))
	}
	for range 180 {
		s := lives[0].next(connectionsFull)
		for i, v := range lives[1:] {
			v.now = lives[0].now.Add(-time.Second)
			l := v.next(connectionsFull).Listeners[0]
			l.ID.Address, l.Port = netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(9000+i)), uint16(9000+i)
			s.Listeners = append(s.Listeners, l)
		}
		tracker.record(s, d)
	}
	require.Len(t, tracker.cases, maxOpen)
	total := int64(0)
	for _, e := range d.shelf.entries {
		total += e.size
		story := d.story(t, e.ID)
		require.Equal(t, model.StatusLosing, story.Summary.Status)
		require.GreaterOrEqual(t, story.Summary.Frames, 5)
	}
	t.Logf("%d incidents are %d bytes", len(d.shelf.entries), total)
	require.Less(t, total, int64(6<<20))
}
