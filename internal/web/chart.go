package web

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	chartColumns = 180 // of five seconds each
	chartHeight  = 40
	columnOf     = incident.Span / chartColumns
)

// chart is a line over the last 15 minutes, as an SVG path.
type chart struct {
	Name    string // "packets dropped per second"
	Class   string
	Now     string // the newest value, in words
	Path    string
	Parts   []layer
	ByCause bool     // parts instead of a path
	Limit   string   // height of the dashed line; "" for none
	Top     string   // of the vertical axis
	Values  string   // of the columns that are seen, by comma, empty where not known
	Series  []series // of several values at a time, which are named; Values is the first of them
	Text    string   // for who cannot see it
}

// layer is what one cause, or one kind of clients, has of a chart.
type layer struct{ Name, Class, Path string }

// series are a name's values for the crosshair.
type series struct{ Name, Values string }

// charts of one listener, and the strip of its statuses.
type charts struct {
	Strip []stretch
	Lines []chart
	// From is the first column that is seen, Columns how many are.
	From, Columns int
	Times         []string // of the horizontal axis
	End, Width    int64    // when the last column ends, in Unix seconds, and how many each is
}

// stretch is a time in one status.
type stretch struct {
	X, W   int
	Status string
}

// columns are the largest value of each width seconds, -1 where there is none.
// The last ends with the newest point.
func columns(points []recording.Point, width int64, value func(recording.Point) float64) []float64 {
	out := make([]float64, chartColumns)
	for i := range out {
		out[i] = -1
	}
	if len(points) == 0 {
		return out
	}
	end := points[len(points)-1].At / width
	for _, p := range points {
		if i := chartColumns - 1 - int(end-p.At/width); i >= 0 && i < chartColumns {
			out[i] = math.Max(out[i], value(p))
		}
	}
	return out
}

// by splits the values by the cause of each column's worst second, the known causes
// first.
func by(points []recording.Point, width int64, values []float64, top float64) (out []layer) {
	var worst [chartColumns]recording.Point
	end := points[len(points)-1].At / width
	for _, p := range points {
		if i := chartColumns - 1 - int(end-p.At/width); i >= 0 && i < chartColumns && p.Drops > worst[i].Drops {
			worst[i] = p
		}
	}
	known := model.DropCauses()
	byCause := make(map[model.Cause][]float64)
	for i, p := range worst {
		if p.Drops == 0 {
			continue
		}
		cause := p.Cause
		if !slices.Contains(known, cause) {
			cause = otherCause
		}
		if byCause[cause] == nil {
			byCause[cause] = slices.Repeat([]float64{-1}, chartColumns)
		}
		byCause[cause][i] = values[i]
	}
	for _, cause := range append(known, otherCause) {
		if byCause[cause] != nil {
			out = append(out, layer{string(cause), string(cause), area(byCause[cause], top)})
		}
	}
	return out
}

// otherCause is one that is not known: of a recording before causes were in it.
const otherCause model.Cause = "unknown"

// area is the path below the values; it is interrupted where there are none.
func area(values []float64, top float64) string {
	var b strings.Builder
	open := false
	for i, v := range values {
		switch {
		case v < 0 && open:
			closeArea(&b)
		case v >= 0 && !open:
			b.WriteString("M" + strconv.Itoa(i) + " " + strconv.Itoa(chartHeight))
		}
		if open = v >= 0; open {
			b.WriteString("V" + height(v, top) + "H" + strconv.Itoa(i+1))
		}
	}
	if open {
		closeArea(&b)
	}
	return b.String()
}

func closeArea(b *strings.Builder) { b.WriteString("V" + strconv.Itoa(chartHeight) + "Z") }

// height is where a value stands, from the top of the chart.
func height(v, top float64) string {
	return strconv.FormatFloat(chartHeight-(chartHeight-2)*math.Min(v/top, 1), 'f', 1, 64)
}

func maxOf(values []float64, least float64) float64 {
	for _, v := range values {
		least = math.Max(least, v)
	}
	return least
}

// strip joins the columns of one status.
func strip(points []recording.Point, width int64) []stretch {
	var out []stretch
	statuses := columns(points, width, func(p recording.Point) float64 { return float64(p.Status) })
	for i, v := range statuses {
		if v < 0 {
			continue
		}
		name := statusName(v)
		if n := len(out); n > 0 && out[n-1].Status == name && out[n-1].X+out[n-1].W == i {
			out[n-1].W++
			continue
		}
		out = append(out, stretch{X: i, W: 1, Status: name})
	}
	return out
}
