package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func example() *report {
	r := &report{Machine: [][2]string{{"kernel", "6.18"}}, Date: "2026-01-02", Command: "bench -sockets 190000", Took: time.Minute}
	r.add(row{What: "sample", Budget: "≤ 1.5 ×", Limit: "1.30 µs", Ours: "1.75 µs", Ratio: "1.35 ×", Met: true},
		row{What: "scan", Budget: "≤ 1.2 ×", Ratio: "1.40 ×"},
		row{What: "close", Budget: "≥ 0.99", Ratio: "0.985", Unsure: true},
		row{What: "beside", Budget: reported})
	for _, n := range []int{100_000, 190_000} {
		cost := time.Duration(n) * 100 // 0.1 µs a socket
		r.BySockets = append(r.BySockets, point{N: n, Sample: 2 * time.Microsecond, Scan: 2 * cost, Bare: []time.Duration{1, 2, cost, cost}})
	}
	r.ByListeners = []point{{N: 1, Sample: 2 * time.Microsecond, Scan: time.Millisecond}, {N: 500, Sample: 150 * time.Microsecond, Scan: 20 * time.Millisecond}}
	return r
}

func TestMarkdown(t *testing.T) {
	text := example().markdown()
	require.Contains(t, text, "| kernel | 6.18 |")
	require.Contains(t, text, "| sample | ≤ 1.5 × | 1.30 µs | 1.75 µs | 1.35 × | met |")
	require.Contains(t, text, "| scan | ≤ 1.2 × |  |  | 1.40 × | **missed** |")
	require.Contains(t, text, "| close | ≥ 0.99 |  |  | 0.985 | within the noise |")
	require.Contains(t, text, "| beside | reported |  |  |  |  |")
	require.Contains(t, text, "| 190,000 | 2.00 µs | 0.00 µs | 0.00 µs | 19.0 ms | 19.0 ms | 38.0 ms |")
	require.Contains(t, text, "| 500 | 150 µs | 20.0 ms |")
}

// Two million sockets at 0.1 µs are 200 ms, a scan here twice that; at 1.8 % of
// a core one every 11.1 s and every 22.2 s.
func TestMeaningDrawsOnLinearly(t *testing.T) {
	text := example().meaning()
	require.Contains(t, text, "about 200 ms even if nothing matches")
	require.Contains(t, text, "one scan every 15.4 s, and one every 30.8 s")
	require.Empty(t, (&report{}).meaning())
}

func TestPlotIsXML(t *testing.T) {
	svg := example().plot()
	decoder := xml.NewDecoder(strings.NewReader(svg))
	lines := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
		}
	}
	require.Equal(t, 4, lines, "sample and scan, by sockets and by listeners")
	require.NotContains(t, svg, "NaN")
	require.Contains(t, svg, ">1 µs<")
	require.Contains(t, svg, ">10 s<")
}

func TestFormats(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1520 * time.Nanosecond: "1.52 µs", 27100 * time.Microsecond: "27.1 ms", 1550 * time.Millisecond: "1.55 s", 470 * time.Millisecond: "470 ms",
	} {
		require.Equal(t, want, brief(d))
	}
	for n, want := range map[int]string{7: "7", 999: "999", 1000: "1,000", 190000: "190,000", 2000000: "2,000,000"} {
		require.Equal(t, want, count(n))
	}
	require.Equal(t, "1.35 ×", times2(1.349))
	require.Equal(t, "0.64 %", percent(0.0064))
	require.Equal(t, "24.5 MiB", mebibytes(49<<19))
	require.Equal(t, "0.041", number(0.041))
	require.Equal(t, "0 allocations", allocated(0.001))
	require.Equal(t, "1 allocation", allocated(1))
	require.Equal(t, "700 allocations", allocated(700))
}
