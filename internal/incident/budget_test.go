package incident

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
)

// hostile are recordings of at most a megabyte a line that would become hundreds in memory.
func hostile() map[string]string {
	const many = 340_000
	key := func(frame string) string { return `0 {"key":` + frame + "}\n" }
	begin := `0 {"begin":{"schema":"` + recording.Schema + `"}}` + "\n"
	return map[string]string{
		"empty objects":      begin + key(`{"Listener":{"Limits":[`+strings.Repeat("{},", many)+`{}]}}`),
		"numbers for limits": begin + key(`{"Listener":{"Limits":[`+strings.Repeat("1,", 500_000)+`1]}}`),
		"nulls for findings": begin + key(`{"Listener":{"Verdict":{"Findings":[`+strings.Repeat("null,", 200_000)+`null]}}}`),
		"objects of one":     begin + key(`{"Listener":{"x":[`+strings.Repeat(`{"a":1},`, 120_000)+`1]}}`),
		"nested":             begin + key(strings.Repeat(`{"a":`, 100_000)+`1`+strings.Repeat(`}`, 100_000)),
		"points of a tick":   begin + `0 {"tick":{"points":[` + strings.Repeat("0,", 500_000) + `0]}}` + "\n",
		"fewer in each line": begin + strings.Repeat(key(`{"Listener":{"Limits":[`+strings.Repeat("{},", 40_000)+`{}]}}`), 8),
		"patches that add":   begin + key("{}") + strings.Repeat(`0 {"next":{"Listener":{"Limits":[`+strings.Repeat("{},", 40_000)+`{}]}}}`+"\n", 8),
		"samples of ticks":   begin + strings.Repeat(`0 {"tick":{"samples":[`+strings.Repeat(`{"from":1,"to":1,"runs":[0,0,0]},`, 7000)+`{"from":1,"to":1,"runs":[0,0,0]}]}}`+"\n", 12),
	}
}

// Nothing that is read of a recording takes more memory at once than a fraction of the manifests'
// limit, however small the file is.
func TestMemoryOfHostileRecordings(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	for name, text := range hostile() {
		in := signed([]byte(text))
		var most uint64
		peak := func() {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
		runtime.GC()
		peak()
		before := most
		r, err := recording.NewReader(bytes.NewReader(in))
		require.NoError(t, err, name)
		for err == nil {
			_, err = r.Next()
			peak()
		}
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, recording.ErrLarge), "%s: %v", name, err)
		_, _ = story.Read(bytes.NewReader(in))
		peak()
		t.Logf("%-20s %4d KiB of text, %3d MiB of heap", name, len(in)>>10, (most-before)>>20)
		require.Less(t, most-before, uint64(40<<20), name)
	}
}

// What real recordings hold is far below the bounds.
func TestRealRecordingsAreMeasured(t *testing.T) {
	r, err := recording.NewReader(bytes.NewReader(aRecording(t, 30, 100)))
	require.NoError(t, err)
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.NotNil(t, f)
	}
	require.Zero(t, r.Damaged)
	require.True(t, recording.Measured([]byte(`{"Points":[`+strings.Repeat("[1,2,3,4,5,6,7,8,9,10],", 900)+`[1]],"Samples":[{"runs":[`+strings.Repeat("1,", 18_000)+"1]}]}")))
}

func TestMeasured(t *testing.T) {
	require.True(t, recording.Measured([]byte(`"`+strings.Repeat(",{[", 100_000)+`"`)), "in a text they are no values")
	require.True(t, recording.Measured([]byte(`"\",`+strings.Repeat(`,`, 100_000)+`"`)), "a quoted quote does not end one")
	require.False(t, recording.Measured([]byte(`["\\",`+strings.Repeat(`1,`, 100_000)+`1]`)), "a quoted backslash does not quote the quote")
	require.False(t, recording.Measured([]byte(strings.Repeat("[", recording.MaxDepth+1))))
	require.False(t, recording.Measured(fmt.Appendf(nil, "[%s1]", strings.Repeat("1,", recording.MaxValues))))
}
