package cli

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/web"
)

// edges are values at the ends of the types that a recording's numbers are read into.
func edges() []string {
	var out []string
	for _, n := range []int64{0, -1, math.MinInt64, math.MaxInt64, math.MinInt32, math.MaxInt32, 1 << 53} {
		out = append(out, strconv.FormatInt(n, 10))
	}
	return append(out, "18446744073709551615", "1.7976931348623157e308", "-1.7976931348623157e308", "4294967295", "65535", "null", `""`)
}

var numbers = regexp.MustCompile(`[:,\[]-?[0-9]+(\.[0-9]+)?`)

// withEdge puts another value in the place of one of a recording's numbers, and signs it.
func withEdge(text []byte, which int, value string) []byte {
	all := numbers.FindAllIndex(text, -1)
	if len(all) == 0 {
		return text
	}
	at := all[which%len(all)]
	changed := fmt.Appendf(nil, "%s%s%s", text[:at[0]+1], value, text[at[1]:])
	var out []byte
	for l := range bytes.Lines(changed) {
		_, body, _ := bytes.Cut(bytes.TrimSuffix(l, []byte("\n")), []byte(" "))
		out = fmt.Appendf(out, "%08x %s\n", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)), body)
	}
	return out
}

// rendered does with a recording all that the commands and the agent do.
func rendered(tb testing.TB, text []byte) {
	tb.Helper()
	if story, err := story.Read(bytes.NewReader(text)); err == nil {
		for _, draw := range []func() error{
			func() error { return render.Incident(io.Discard, story, render.TextOptions{}) },
			func() error { return render.IncidentJSON(io.Discard, story) },
			func() error { return render.IncidentsJSON(io.Discard, []recording.Summary{story.Summary}) },
			func() error { return web.IncidentReport(io.Discard, story, "1.2.3") },
		} {
			if err := draw(); err != nil && bytes.Contains([]byte(err.Error()), []byte("\n")) {
				tb.Fatalf("not one clear line: %v", err)
			}
		}
	}
	r, err := recording.NewReader(bytes.NewReader(text))
	if err != nil {
		return
	}
	j := recording.Rejudge(r)
	moments, err := j.All()
	if err != nil || len(moments) == 0 {
		return
	}
	_ = j.Conclude(io.Discard)
	for _, output := range []string{"lines", "json"} {
		o := replayOptions{output: output, speed: 1}
		_ = o.show(context.Background(), io.Discard, moments)
	}
	for _, s := range []*model.Snapshot{moments[0], moments[len(moments)-1]} {
		_ = render.Text(io.Discard, s, render.TextOptions{})
		_ = render.JSON(io.Discard, s)
	}
}

// short is the beginning of the recording: two frames, which the rest only changes.
func short(tb testing.TB) []byte {
	tb.Helper()
	text, err := os.ReadFile(recorded)
	require.NoError(tb, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	require.Greater(tb, len(lines), 12)
	return bytes.Join(lines[:12], nil)
}

// Whatever numbers a recording has, what is made of it ends: no recursion, no panic.
func TestValuesAtTheEdge(t *testing.T) { edgesOf(t, 30) }

// The same of many more of its numbers.
func TestLongValuesAtTheEdge(t *testing.T) { edgesOf(t, 500) }

func edgesOf(t *testing.T, most int) {
	t.Helper()
	text := short(t)
	n, step := len(numbers.FindAllIndex(text, -1)), 1
	require.NotZero(t, n)
	if n > most { // all of them: FuzzRendered
		step = n/most + 1
	}
	for which := 0; which < n; which += step {
		value := edges()[which/step%len(edges())]
		rendered(t, withEdge(text, which, value))
	}
}

// A recording's renderers, with values at the ends of their types.
func FuzzRendered(f *testing.F) {
	f.Add(uint(0), uint(0), uint(1), uint(1))
	f.Add(uint(100), uint(2), uint(200), uint(3))
	text := short(f)
	f.Fuzz(func(t *testing.T, first, firstValue, second, secondValue uint) {
		values := edges()
		one := withEdge(text, int(first%1_000_000), values[firstValue%uint(len(values))])
		rendered(t, withEdge(one, int(second%1_000_000), values[secondValue%uint(len(values))]))
	})
}
