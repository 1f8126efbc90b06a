package web

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func statusName(v float64) string { return model.Status(v).String() }

// newCharts draws a listener's last 15 minutes; nil while there is nothing.
func newCharts(l *model.Listener, points []incident.Point) *charts {
	if len(points) < 2 {
		return nil
	}
	out := &charts{Strip: strip(points), Lines: []chart{dropsChart(points)}}
	if l.AcceptQueue != nil {
		out.Lines = append(out.Lines, queueChart(l, points))
	}
	if room := l.Capacity(); room != nil {
		out.Lines = append(out.Lines, insideChart(*room, points))
	}
	return out
}

func dropsChart(points []incident.Point) chart {
	values := columns(points, func(p incident.Point) float64 { return float64(p.Drops) })
	top, now := maxOf(values, 1), points[len(points)-1].Drops
	return chart{
		Name: "packets dropped per second", Class: "drops", Now: phrase.Number(int(now)), Path: area(values, top),
		Text: fmt.Sprintf("Packets dropped per second: now %d, at most %.0f in 15 minutes", now, maxOf(values, 0)),
	}
}

func queueChart(l *model.Listener, points []incident.Point) chart {
	values := columns(points, func(p incident.Point) float64 { return float64(p.Peak) })
	room := l.AcceptQueue.Capacity()
	top, now := maxOf(values, float64(room)), points[len(points)-1].Peak
	return chart{
		Name: "accept queue, its peaks", Class: "queue", Now: fmt.Sprintf("%s of %s", phrase.Number(int(now)), phrase.Number(room)),
		Path: area(values, top), Limit: height(float64(room), top),
		Text: fmt.Sprintf("Accept queue: now %d of %d, at most %.0f in 15 minutes", now, room, maxOf(values, 0)),
	}
}

func insideChart(room int, points []incident.Point) chart {
	values := columns(points, func(p incident.Point) float64 { return float64(p.Inside) })
	top, now := maxOf(values, float64(room)), points[len(points)-1].Inside
	c := chart{
		Name: "clients inside", Class: "inside", Now: "n/a", Path: area(values, top), Limit: height(float64(room), top),
		Text: fmt.Sprintf("Clients inside: at most %.0f of %d in 15 minutes", maxOf(values, 0), room),
	}
	if now >= 0 {
		c.Now = fmt.Sprintf("%s of %s", phrase.Number(int(now)), phrase.Number(room))
	}
	return c
}
