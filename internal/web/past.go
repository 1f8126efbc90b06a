package web

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// past is how much of it the charts show.
type past struct {
	minutes string // as the link has it; "" for what is shown without one
	seconds int64
	width   int64 // seconds in a column
}

// pasts are those that a page offers, the shortest first.
func pasts() []past {
	return []past{{"1", 60, 1}, {"5", 300, 2}, {"", 900, columnOf}}
}

func pastOf(minutes string) past {
	all := pasts()
	for _, p := range all {
		if p.minutes == minutes {
			return p
		}
	}
	return all[len(all)-1]
}

// pastLink leads to the same page with another past.
type pastLink struct {
	Name, Link string
	Chosen     bool
}

func pastLinks(c choice) (out []pastLink) {
	for _, p := range pasts() {
		out = append(out, pastLink{
			Name: strconv.FormatInt(p.seconds/60, 10) + " min", Link: "?" + c.query(p.minutes), Chosen: p.minutes == c.minutes,
		})
	}
	return out
}

// marks is how many times stand below a chart.
const marks = 4

// times are those of the horizontal axis, in UTC, the last one the end.
func (p past) times(end int64) []string {
	form := "15:04"
	if p.seconds < 300 {
		form = time.TimeOnly
	}
	out := make([]string, 0, marks)
	for i := range int64(marks) {
		out = append(out, time.Unix(end-p.seconds+p.seconds*i/(marks-1), 0).UTC().Format(form))
	}
	return out
}

// axis is a value at the vertical axis.
func axis(v float64) string { return phrase.Number(int(math.Ceil(v))) }

// list are values by comma, nothing where one is not known.
func list(values []float64) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		if v >= 0 {
			b.WriteString(strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	return b.String()
}

// lastValues are the last of a list.
func lastValues(list string, n int) string {
	all := strings.Split(list, ",")
	return strings.Join(all[max(0, len(all)-n):], ",")
}
