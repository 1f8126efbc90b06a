package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// zoomSpan is how much of the beginning is drawn sample by sample.
const zoomSpan = 10 * time.Second

// zoom is the beginning of an incident by the samples of its accept queue.
type zoom struct {
	Lines    []chart
	From, To string
}

// newZoom is nil where the samples show no beginning.
func newZoom(s *story.Story) *zoom {
	f := s.Filling()
	if f == nil {
		return nil
	}
	from := f.Start()
	w := window{from: from.UnixMilli(), to: from.Add(zoomSpan).UnixMilli(), samples: s.Samples}
	out := &zoom{From: from.UTC().Format(story.Moment), To: from.Add(zoomSpan).UTC().Format(story.Moment)}
	queue, most := w.path(func(r recording.Run) float64 { return float64(r.Length) }, float64(f.Room), false)
	out.Lines = append(out.Lines, chart{
		Name: "accept queue, by sample", Class: "queue", Now: fmt.Sprintf("at most %s of %s", phrase.Number(int(most)), phrase.Number(f.Room)),
		Path: queue, Limit: height(float64(f.Room), math.Max(most, float64(f.Room))), Text: "Accept queue by sample. " + f.String(),
	})
	drops, most := w.path(func(r recording.Run) float64 { return float64(r.Dropped) }, 1, true)
	if drops != "" {
		out.Lines = append(out.Lines, chart{
			Name: "packets dropped between two samples", Class: "losing", Now: "at most " + phrase.Number(int(most)),
			Path: drops, Text: fmt.Sprintf("Packets dropped between two samples: at most %.0f", most),
		})
	}
	return out
}

// window is a time of which samples are drawn.
type window struct {
	from, to int64 // Unix milliseconds
	samples  []recording.Samples
}

// path draws a value of the runs as an area, a moment's value as a line of its own,
// and returns the largest.
func (w *window) path(value func(recording.Run) float64, least float64, moments bool) (path string, most float64) {
	for _, r := range w.all {
		most = math.Max(most, value(r.Run))
	}
	var b strings.Builder
	for _, r := range w.all {
		v := value(r.Run)
		if v == 0 {
			continue
		}
		x, end := w.x(r.from), w.x(r.to)
		if moments {
			end = x + 0.4
		}
		b.WriteString("M" + coordinate(x) + " " + strconv.Itoa(chartHeight) + "V" + height(v, math.Max(most, least)) + "H" + coordinate(math.Max(end, x+0.1)) + "V" + strconv.Itoa(chartHeight) + "Z")
	}
	return b.String(), most
}

// drawnRun is a run with the time it holds.
type drawnRun struct {
	recording.Run
	from, to int64
}

// all yields the runs within the window.
func (w *window) all(yield func(int, drawnRun) bool) {
	n := 0
	for i := range w.samples {
		s := &w.samples[i]
		for j, r := range s.Runs {
			d := drawnRun{Run: r, from: s.From + r.At, to: s.To}
			if j+1 < len(s.Runs) {
				d.to = s.From + s.Runs[j+1].At
			}
			if d.to < w.from || d.from >= w.to {
				continue
			}
			if d.from < w.from {
				d.from, d.Dropped = w.from, 0
			}
			d.to = min(d.to, w.to)
			if !yield(n, d) {
				return
			}
			n++
		}
	}
}

func (w *window) x(at int64) float64 {
	return float64(at-w.from) / float64(w.to-w.from) * chartColumns
}

func coordinate(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
