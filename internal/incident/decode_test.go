package incident

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
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
		_, err := Tell(strings.NewReader(text))
		require.ErrorIs(t, err, ErrForeign, name)
		require.NotContains(t, err.Error(), "\n")
	}
	other, err := line{Begin: &Header{Schema: "tcpdiag.recording/v2"}}.encode()
	require.NoError(t, err)
	_, err = Tell(bytes.NewReader(other))
	require.ErrorContains(t, err, `"tcpdiag.recording/v2"`)
	none, err := line{Begin: &Header{Schema: Schema}}.encode()
	require.NoError(t, err)
	_, err = Tell(bytes.NewReader(none))
	require.ErrorIs(t, err, errEmpty)
}

// A file without an end is not read to its end.
func TestRecordingWithoutEnd(t *testing.T) {
	begin, err := line{Begin: &Header{Schema: Schema}}.encode()
	require.NoError(t, err)
	for name, endless := range map[string]string{"lines": strings.Repeat("x", 10_000) + "\n", "one line": "x"} {
		_, err := Tell(io.MultiReader(bytes.NewReader(begin), strings.NewReader(strings.Repeat(endless, 2*maxRead/len(endless)))))
		require.ErrorIs(t, err, errLarge, name)
	}
}

// Some bytes can repeat a large frame: all frames together are bounded.
func TestFramesAreBounded(t *testing.T) {
	begin, err := line{Begin: &Header{Schema: Schema}}.encode()
	require.NoError(t, err)
	key, err := line{Key: mustJSON(t, Frame{Listener: model.Listener{Verdict: model.Verdict{Summary: strings.Repeat("x", 900_000)}}})}.encode()
	require.NoError(t, err)
	next, err := line{Next: json.RawMessage("{}")}.encode()
	require.NoError(t, err)
	r, err := NewReader(bytes.NewReader(slices.Concat(begin, key, bytes.Repeat(next, 20))))
	require.NoError(t, err)
	r.whole = maxWhole - 2_500_000
	for range 3 {
		_, err = r.Next()
		require.NoError(t, err)
	}
	_, err = r.Next()
	require.ErrorIs(t, err, errLarge)
}

// After a damaged record a reader continues with the next whole frame.
func TestDamagedRecord(t *testing.T) {
	text := aRecording(t, 1, 110)
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[20][30] ^= 1
	r, frames := readAll(t, bytes.NewReader(bytes.Join(lines, nil)))
	require.Len(t, frames, 110-r.Damaged, "one damaged record costs those up to the next whole frame")
	require.Greater(t, r.Damaged, 1)
	require.Less(t, r.Damaged, keyEvery)
	for _, f := range frames {
		_, same, _ := f.Replay()
		require.True(t, same)
	}
	story, err := Tell(bytes.NewReader(bytes.Join(lines, nil)))
	require.NoError(t, err)
	require.Equal(t, r.Damaged, story.Damaged)
}

func TestImpossibleValues(t *testing.T) {
	f := &Frame{Listener: model.Listener{Verdict: model.Verdict{Status: 99}}}
	require.ErrorIs(t, f.check(), errImpossible)
	f = &Frame{Listener: model.Listener{AcceptQueue: &model.AcceptQueue{Limit: -1}}}
	require.ErrorIs(t, f.check(), errImpossible)
	f = &Frame{Points: []Point{{Status: -1}}}
	require.ErrorIs(t, f.check(), errImpossible)
	require.NoError(t, new(Frame).check())
}

func TestMergePatch(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{`{"a":1}`, `{"a":1}`, ``},
		{`{"a":1}`, `{"a":2}`, `{"a":2}`},
		{`{"a":1,"b":2}`, `{"a":1}`, `{"b":null}`},
		{`{"a":1,"b":2}`, `{"a":1,"b":null}`, `{"b":null}`},
		{`{"a":null}`, `{}`, ``},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, `{"a":{"c":3}}`},
		{`{"a":[1,2]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"a":1}`, `{"a":{"b":18446744073709551615}}`, `{"a":{"b":18446744073709551615}}`},
	} {
		patch, err := diff([]byte(test.from), []byte(test.to))
		require.NoError(t, err)
		require.Equal(t, test.want, string(patch), "%s -> %s", test.from, test.to)
	}
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
			r, err := NewReader(bytes.NewReader(in))
			if err != nil {
				if !errors.Is(err, ErrForeign) || strings.Contains(err.Error(), "\n") {
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
			if s, err := Tell(bytes.NewReader(in)); err == nil && s.Summary.Frames == 0 {
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
		out = append(fmt.Appendf(out, "%08x ", checksum(body)), append(body, '\n')...)
	}
	return out
}
