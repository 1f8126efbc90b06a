package recording

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// written are frames as a reader of the format has them.
func written(t testing.TB, schema string, frames ...*Frame) (out []*Frame) {
	t.Helper()
	text, err := Line{Begin: &Header{Schema: schema}}.Encode()
	require.NoError(t, err)
	var e Encoder
	for _, f := range frames {
		line, err := e.Frame(f)
		require.NoError(t, err)
		text = slices.Concat(text, line)
	}
	r, err := NewReader(bytes.NewReader(text))
	require.NoError(t, err)
	for range frames {
		f, err := r.Next()
		require.NoError(t, err)
		out = append(out, f)
	}
	return out
}

// setBack is a time of which the wall clock was an hour behind.
func setBack(t time.Time) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) -= 3600 << 30 // time.Time.wall: seconds, then 30 bits of nanoseconds
	return t
}

func TestClockThatIsSet(t *testing.T) {
	now := time.Now()
	seen := setBack(now.Add(-time.Second))
	require.Equal(t, time.Second, now.Sub(seen))
	f := &Frame{At: now.Round(0).UTC(), Moment: now, Listener: model.Listener{
		Last: &model.LastListener{Seen: seen}, Basis: &model.Basis{Before: &model.Listener{Recent: &model.Recent{Ended: seen}}},
	}}
	got := written(t, Schema, f)[0]
	want := f.At.Add(-time.Second)
	require.Equal(t, want, got.Listener.Last.Seen)
	require.Equal(t, want, got.Listener.Basis.Before.Recent.Ended)
	require.Zero(t, got.Listener.Basis.Before.Recent.Began)
}

// Format 1 has for how long the first has waited, and not for how long it has been the first.
func TestNothingAcceptedInFormat1(t *testing.T) {
	at := time.Unix(1_800_000_000, 0).UTC()
	frame := func(seconds float64, oldest, age time.Duration) *Frame {
		return &Frame{At: at.Add(time.Duration(seconds * float64(time.Second))), Listener: model.Listener{
			AcceptQueue: &model.AcceptQueue{Length: 3, OldestWait: &oldest}, Connections: &model.Connections{Age: age},
		}}
	}
	frames := []*Frame{
		frame(0, time.Second, 0),
		frame(1, 2*time.Second, 0),
		frame(2, 3004*time.Millisecond, 0),
		frame(2.5, 3004*time.Millisecond, 500*time.Millisecond), // the same reading
		frame(3, 3*time.Second, 0),                              // another is first, which is a second younger
		frame(4, 4*time.Second, 0),
	}
	long := func(d time.Duration) *time.Duration { return &d }
	for format, want := range map[string][]*time.Duration{
		"1": {nil, long(time.Second), long(2 * time.Second), long(2 * time.Second), long(0), long(time.Second)},
		"2": make([]*time.Duration, 6),
	} {
		var got []*time.Duration
		for _, f := range written(t, schemaName+format, frames...) {
			got = append(got, f.Listener.AcceptQueue.NoAcceptFor)
		}
		require.Equal(t, want, got, format)
	}
	frames[2].Listener.AcceptQueue = nil // nobody waits
	require.Nil(t, written(t, schemaName+"1", frames...)[3].Listener.AcceptQueue.NoAcceptFor)
}

// testdata has a recording of each format, by an agent that watched a program which listened and did not
// accept any more; in the first, of an earlier program, it is not for how long nothing was accepted. A later
// program may say it in other words, it may not find another cause.
func TestRecordingsOfEachFormat(t *testing.T) {
	files, err := filepath.Glob("testdata/*.tcpdiag")
	require.NoError(t, err)
	formats := make(map[int]bool)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		r, err := NewReader(bytes.NewReader(text))
		require.NoError(t, err, name)
		formats[r.format] = true
		var found []model.Cause
		for {
			f, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			v, _, judged := f.Replay()
			require.True(t, judged)
			require.Equal(t, f.Listener.Verdict.Cause, v.Cause, "%s: %s", name, f.At)
			require.Equal(t, f.Listener.Verdict.Status, v.Status, "%s: %s", name, f.At)
			found = append(found, v.Cause)
		}
		require.Zero(t, r.Damaged, name)
		require.Greater(t, len(found), 4, name)
		require.Contains(t, found, model.CauseNotAccepting, name)
	}
	for format := range latest {
		require.True(t, formats[format+1], "no recording of format %d", format+1)
	}
}
