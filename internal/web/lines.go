package web

import (
	"fmt"
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func statusName(v float64) string { return model.Status(v).String() }

// newCharts draws a listener's past; nil while there is nothing.
func newCharts(l *model.Listener, points []recording.Point, of past) *charts {
	if len(points) < 2 {
		return nil
	}
	end := points[len(points)-1].At
	seen := points
	for len(seen) > 2 && seen[0].At <= end-of.seconds {
		seen = seen[1:]
	}
	out := chartsOver(l, seen, of.width)
	out.Columns = int(of.seconds / of.width)
	out.From = chartColumns - out.Columns
	out.Times, out.End, out.Width = of.times(end), end, of.width
	for i := range out.Lines {
		out.Lines[i].Values = lastValues(out.Lines[i].Values, out.Columns)
		for k := range out.Lines[i].Series {
			out.Lines[i].Series[k].Values = lastValues(out.Lines[i].Series[k].Values, out.Columns)
		}
	}
	return out
}

// chartsOver draws points, width seconds in a column.
func chartsOver(l *model.Listener, points []recording.Point, width int64) *charts {
	p := plot{points, width, phrase.Seconds(time.Duration(chartColumns*width) * time.Second)}
	out := &charts{Strip: strip(points, width), Columns: chartColumns}
	if c, known := p.clients(l); known {
		out.Lines = append(out.Lines, c)
	}
	out.Lines = append(out.Lines, p.drops())
	if l.AcceptQueue != nil {
		out.Lines = append(out.Lines, p.queue(l.AcceptQueue.Capacity()))
	}
	if room := l.Capacity(); room != nil {
		out.Lines = append(out.Lines, p.inside(*room))
	}
	return out
}

// plot is what is drawn.
type plot struct {
	points []recording.Point
	width  int64
	span   string // in words
}

func (p *plot) values(of func(recording.Point) float64) []float64 {
	return columns(p.points, p.width, of)
}

func (p *plot) last() recording.Point { return p.points[len(p.points)-1] }

func (p *plot) drops() chart {
	values := p.values(func(p recording.Point) float64 { return float64(p.Drops) })
	top, now := maxOf(values, 1), p.last().Drops
	c := chart{
		Name: "packets dropped per second, by cause", Now: phrase.Number(int(now)), Parts: by(p.points, p.width, values, top), ByCause: true, Top: axis(top), Values: list(values),
		Text: fmt.Sprintf("Packets dropped per second: last %d, at most %.0f in %s", now, maxOf(values, 0), p.span),
	}
	for _, part := range c.Parts {
		c.Text += ", " + part.Name
	}
	return c
}

// queue has at most as many as there is room for: the kernel may take one more for a moment, see
// model.AcceptQueue, and more than there are reads as a mistake.
func (p *plot) queue(room int) chart {
	values := p.values(func(p recording.Point) float64 { return min(float64(p.Peak), float64(room)) })
	top, now := float64(room), min(int(p.last().Peak), room)
	return chart{
		Name: "accept queue, its peaks", Class: "queue", Now: fmt.Sprintf("%s of %s", phrase.Number(now), phrase.Number(room)),
		Path: area(values, top), Limit: height(float64(room), top), Top: axis(top), Values: list(values),
		Text: fmt.Sprintf("Accept queue: last %d of %d, at most %.0f in %s", now, room, maxOf(values, 0), p.span),
	}
}

// inside are those of the queue and of the connections, likewise.
func (p *plot) inside(room int) chart {
	values := p.values(func(p recording.Point) float64 { return min(float64(p.Inside), float64(room)) })
	top, now := float64(room), min(int(p.last().Inside), room)
	c := chart{
		Name: "clients inside", Class: "inside", Now: "n/a", Path: area(values, top), Limit: height(float64(room), top), Top: axis(top), Values: list(values),
		Text: fmt.Sprintf("Clients inside: at most %.0f of %d in %s", maxOf(values, 0), room, p.span),
	}
	if now >= 0 {
		c.Now = fmt.Sprintf("%s of %s", phrase.Number(now), phrase.Number(room))
	}
	return c
}

// stage is how much of a limit was in use, worth drawing where half of it ever was.
func (p *plot) stage(i int, name string) (c chart, worth bool) {
	values := p.values(func(p recording.Point) float64 { return float64(p.Used[i]) })
	most := maxOf(values, 0)
	c = chart{
		Name: name + ", percent of the limit", Class: "service", Now: "n/a", Path: area(values, 100), Top: "100",
		Text: fmt.Sprintf("%s: at most %.0f %% of the limit in %s", name, most, p.span),
	}
	if now := p.last().Used[i]; now >= 0 {
		c.Now = fmt.Sprintf("%d %%", now)
	}
	return c, most >= 50
}

// inFlight is worth drawing where the process ever waited for a peer.
func (p *plot) inFlight() (c chart, worth bool) {
	values := p.values(func(p recording.Point) float64 { return float64(p.InFlight) })
	most := maxOf(values, 0)
	c = chart{
		Name: "requests in flight to the process's peers", Class: "waiting", Now: "n/a", Path: area(values, math.Max(most, 1)), Top: axis(math.Max(most, 1)),
		Text: fmt.Sprintf("Requests in flight to the process's peers: at most %.0f in %s", most, p.span),
	}
	if now := p.last().InFlight; now >= 0 {
		c.Now = phrase.Number(int(now))
	}
	return c, most > 0
}
