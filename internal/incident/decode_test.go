package incident

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

// aRecording is one as it is written.
func aRecording(tb testing.TB, seed uint64, frames int) []byte {
	tb.Helper()
	dir := tb.TempDir()
	d := &direct{writer: newWriter(Options{Dir: dir, Limits: someLimits(), Log: quiet(), Now: time.Now, Version: "test"})}
	d.prepare()
	tracker := &tracker{history: NewHistory()}
	v := newLife(seed)
	for range frames {
		tracker.record(v.next(connectionsFull), d)
	}
	text, err := os.ReadFile(filepath.Join(dir, nameOf(d.shelf.list()[0].ID)))
	require.NoError(tb, err)
	d.close()
	return text
}

func TestForeignFiles(t *testing.T) {
	for name, text := range map[string]string{
		"empty":   "",
		"text":    "hello\n",
		"log":     strings.Repeat("2026-01-02 03:04:05 INFO nothing\n", 1000),
		"json":    `{"schema": "tcpdiag.snapshot/v1"}`,
		"binary":  "\x7fELF\x02\x01\x01\x00\x00",
		"endless": strings.Repeat("x", 3<<20),
	} {
		_, err := story.Read(strings.NewReader(text))
		require.ErrorIs(t, err, recording.ErrForeign, name)
		require.NotContains(t, err.Error(), "\n")
	}
	for _, schema := range []string{"tcpdiag.snapshot/v1", "tcpdiag.recording/v0", "tcpdiag.recording/v", "tcpdiag.recording/v1.5"} {
		other, err := recording.Line{Begin: &recording.Header{Schema: schema}}.Encode()
		require.NoError(t, err)
		_, err = story.Read(bytes.NewReader(other))
		require.ErrorIs(t, err, recording.ErrForeign)
		require.ErrorContains(t, err, schema)
	}
	newer, err := recording.Line{Begin: &recording.Header{Schema: "tcpdiag.recording/v3", Version: "9.0"}}.Encode()
	require.NoError(t, err)
	_, err = story.Read(bytes.NewReader(newer))
	require.ErrorIs(t, err, recording.ErrNewer)
	require.EqualError(t, err, "recorded by a later version of tcpdiag (9.0): it is of format 3, this program reads formats up to 2")
	none, err := recording.Line{Begin: &recording.Header{Schema: recording.Schema}}.Encode()
	require.NoError(t, err)
	_, err = story.Read(bytes.NewReader(none))
	require.ErrorIs(t, err, story.ErrEmpty)
}

// A file without an end is not read to its end.
func TestRecordingWithoutEnd(t *testing.T) {
	begin, err := recording.Line{Begin: &recording.Header{Schema: recording.Schema}}.Encode()
	require.NoError(t, err)
	for name, endless := range map[string]string{"lines": strings.Repeat("x", 10_000) + "\n", "one line": "x"} {
		_, err := story.Read(io.MultiReader(bytes.NewReader(begin), strings.NewReader(strings.Repeat(endless, 2*recording.MaxRead/len(endless)))))
		require.ErrorIs(t, err, recording.ErrLarge, name)
	}
}

// After a damaged record a reader continues with the next whole frame.
func TestDamagedRecord(t *testing.T) {
	text := aRecording(t, 1, 110)
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[20][30] ^= 1
	r, frames := readAll(t, bytes.NewReader(bytes.Join(lines, nil)))
	require.Len(t, frames, 110-r.Damaged, "one damaged record costs those up to the next whole frame")
	require.Greater(t, r.Damaged, 1)
	require.Less(t, r.Damaged, recording.KeyEvery)
	for _, f := range frames {
		_, same, _ := f.Replay()
		require.True(t, same)
	}
	story, err := story.Read(bytes.NewReader(bytes.Join(lines, nil)))
	require.NoError(t, err)
	require.Equal(t, r.Damaged, story.Damaged)
}

// Whatever the bytes are: no panic, no endless reading, and what is read can be
// reported and judged.
func FuzzRecording(f *testing.F) {
	m := mutate.Into(f)
	whole := aRecording(f, 2, 4)
	m.Add(whole)
	m.Add(whole[:len(whole)/2])
	m.Add([]byte("00000000 {}\n"))
	m.Add([]byte(""))
	m.Fuzz(func(t *testing.T, text []byte) {
		for _, in := range [][]byte{text, signed(text)} {
			r, err := recording.NewReader(bytes.NewReader(in))
			if err != nil {
				if !errors.Is(err, recording.ErrForeign) && !errors.Is(err, recording.ErrNewer) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("not one clear line: %v", err)
				}
				continue
			}
			for {
				frame, err := r.Next()
				if err != nil {
					break
				}
				frame.Replay()
				frame.Snapshot(&r.Header, frame.Listener.Verdict)
			}
			if s, err := story.Read(bytes.NewReader(in)); err == nil && s.Summary.Frames == 0 {
				t.Fatal("a story of nothing")
			}
		}
	})
}

// signed gives every line the sum that it should have, so that what is in it is
// read.
func signed(text []byte) []byte {
	var out []byte
	for l := range bytes.Lines(text) {
		_, body, _ := bytes.Cut(bytes.TrimSuffix(l, []byte("\n")), []byte(" "))
		out = append(fmt.Appendf(out, "%08x ", recording.Checksum(body)), append(body, '\n')...)
	}
	return out
}
