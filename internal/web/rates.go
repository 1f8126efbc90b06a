package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// clients are those that came each second, and what became of them: the area of those
// turned away stands on that of those served, below the line of those offered. known is
// false where their handshakes were not followed.
func (p *plot) clients(l *model.Listener) (c chart, known bool) {
	of := func(pick func(recording.Rate) uint16) []float64 {
		return means(p.points, p.width, func(p recording.Point) (float64, bool) { return float64(pick(p.Clients)), p.Clients.Known })
	}
	offered := of(func(r recording.Rate) uint16 { return r.Offered })
	if maxOf(offered, -1) < 0 {
		return c, false
	}
	served, away := of(func(r recording.Rate) uint16 { return r.Served }), of(func(r recording.Rate) uint16 { return r.TurnedAway })
	ended := make([]float64, len(served))
	for i := range served {
		ended[i] = served[i] + max(0, away[i])
	}
	name := "served"
	if t := l.Totals.Clients; t == nil || !t.Answers.Known {
		name = "let in"
	}
	top, now := math.Ceil(maxOf(ended, maxOf(offered, 1))), p.last().Clients
	c = chart{
		Name: "clients per second", Now: "not known", Top: axis(top), Values: list(offered),
		Parts: []layer{
			{"turned away", "turned-away", area(ended, top)}, {name, "served", area(served, top)}, {"offered", "offered", stairs(offered, top)},
		},
		Series: []series{{"offered", list(offered)}, {name, list(served)}, {"turned away", list(away)}},
		Text:   fmt.Sprintf("Clients per second: at most %.0f offered, %.0f %s and %.0f turned away in %s", math.Ceil(maxOf(offered, 0)), math.Ceil(maxOf(served, 0)), name, math.Ceil(maxOf(away, 0)), p.span),
	}
	if now.Known {
		c.Now = fmt.Sprintf("%d offered, %d %s, %d turned away", now.Offered, now.Served, name, now.TurnedAway)
	}
	return c, true
}

// means are the averages of each width seconds, to a tenth, -1 where nothing is known: a
// rate's peak would hide what was lost beside it in other seconds.
func means(points []recording.Point, width int64, value func(recording.Point) (float64, bool)) []float64 {
	out, seconds := make([]float64, chartColumns), make([]float64, chartColumns)
	end := points[len(points)-1].At / width
	for _, p := range points {
		v, known := value(p)
		if i := chartColumns - 1 - int(end-p.At/width); known && i >= 0 && i < chartColumns {
			out[i] += v
			seconds[i]++
		}
	}
	for i, n := range seconds {
		if out[i] = math.Round(10*out[i]/max(n, 1)) / 10; n == 0 {
			out[i] = -1
		}
	}
	return out
}

// stairs is the line above the values; it is interrupted where there are none.
func stairs(values []float64, top float64) string {
	var b strings.Builder
	open := false
	for i, v := range values {
		switch {
		case v < 0:
		case open:
			b.WriteString("V" + height(v, top) + "H" + strconv.Itoa(i+1))
		default:
			b.WriteString("M" + strconv.Itoa(i) + " " + height(v, top) + "H" + strconv.Itoa(i+1))
		}
		open = v >= 0
	}
	return b.String()
}
