package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// plot draws the three tables as an SVG: both axes logarithmic, so that a cost
// that grows with the size is a straight line and one that does not is flat.
func (r *report) plot() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", 3*panelWidth, panelHeight)
	b.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	for i, p := range []panel{
		{"sockets in the table", r.BySockets}, {"listeners watched", r.ByListeners}, {"namespaces watched", r.ByNamespaces},
	} {
		p.draw(&b, i*panelWidth)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

const (
	panelWidth, panelHeight = 330, 300
	left, right, top, low   = 60, 20, 34, 250
)

// The vertical axis is the same in all panels: from 1 µs to 1 s and, where
// need be, ten.
const (
	least = float64(time.Microsecond)
	most  = float64(10 * time.Second)
)

type panel struct {
	title  string
	points []point
}

func (p panel) draw(b *strings.Builder, x0 int) {
	fmt.Fprintf(b, `<text x="%d" y="18" font-weight="bold">%s</text>`+"\n", x0+left, p.title)
	for v := least; v <= most*1.01; v *= 10 {
		y := height(time.Duration(v))
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", x0+left, y, x0+panelWidth-right, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", x0+left-6, y+4, axis(time.Duration(v)))
	}
	if len(p.points) == 0 {
		return
	}
	for i, q := range p.points {
		if i == 0 || i == len(p.points)-1 || i == len(p.points)/2 {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", p.across(x0, q.N), low+18, count(q.N))
		}
	}
	p.line(b, x0, "scan", "#b3261e", func(q point) time.Duration { return q.Scan })
	p.line(b, x0, "sample", "#1a5fb4", func(q point) time.Duration { return q.Sample })
}

func (p panel) line(b *strings.Builder, x0 int, name, colour string, of func(point) time.Duration) {
	var path []string
	for _, q := range p.points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", p.across(x0, q.N), height(of(q))))
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), colour)
	for _, xy := range path {
		x, y, _ := strings.Cut(xy, ",")
		fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3" fill="%s"/>`+"\n", x, y, colour)
	}
	last := p.points[len(p.points)-1]
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s" text-anchor="end">%s</text>`+"\n", p.across(x0, last.N), height(of(last))-10, colour, name)
}

func (p panel) across(x0, n int) float64 {
	first, last := math.Log(float64(p.points[0].N)), math.Log(float64(p.points[len(p.points)-1].N))
	width := float64(panelWidth - left - right)
	if last <= first {
		return float64(x0 + left)
	}
	return float64(x0+left) + width*(math.Log(float64(n))-first)/(last-first)
}

func height(d time.Duration) float64 {
	share := (math.Log(float64(d)) - math.Log(least)) / (math.Log(most) - math.Log(least))
	return low - (low-top)*min(1, max(0, share))
}

func axis(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
