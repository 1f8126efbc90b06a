package main

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"time"
)

// The terminal's measures, in pixels.
const (
	cell    = 8.43 // a column of the font below
	rowStep = 18
	margin  = 14
)

// colours are the theme's, by SGR number.
func colour(n int) string {
	switch n {
	case 30:
		return "#0d1117"
	case 31:
		return "#ff7b72"
	case 32:
		return "#3fb950"
	case 33:
		return "#e3b341"
	case 36:
		return "#76e3ea"
	case 41:
		return "#b62324"
	case 42:
		return "#3fb950"
	case 43:
		return "#d29922"
	case 97:
		return "#ffffff"
	}
	return "#e6edf3"
}

// picture is what a terminal showed, one screen after the other.
type picture struct {
	columns, rows int
	every         time.Duration
	title         string
	screens       []screen
	stays         []int // for how many turns each is shown
}

// add takes a screen; one that is like the one before it only stays longer.
func (p *picture) add(s screen) {
	p.rows = max(p.rows, len(s))
	if n := len(p.screens); n > 0 && fmt.Sprint(p.screens[n-1]) == fmt.Sprint(s) {
		p.stays[n-1]++
		return
	}
	p.screens, p.stays = append(p.screens, s), append(p.stays, 1)
}

func (p *picture) svg() []byte {
	var b bytes.Buffer
	width, height := float64(p.columns)*cell+2*margin, p.rows*rowStep+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" role="img" aria-label="%s">`+"\n", width, height, width, html.EscapeString(p.title))
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n", html.EscapeString(p.title))
	b.WriteString("text{font:14px ui-monospace,\"DejaVu Sans Mono\",Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre}\n.b{font-weight:700}.d{opacity:.62}\n")
	p.turns(&b)
	fmt.Fprintf(&b, "</style>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n")
	for i, s := range p.screens {
		fmt.Fprintf(&b, "<g id=\"f%d\">\n", i)
		for row, pieces := range s {
			line(&b, row, pieces)
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// turns is the animation: each screen is seen in its part of the whole time. Who asked
// for no motion sees the last one.
func (p *picture) turns(b *bytes.Buffer) {
	if len(p.screens) < 2 {
		return
	}
	all := 0
	for _, n := range p.stays {
		all += n
	}
	seconds := (time.Duration(all) * p.every).Seconds()
	from := 0
	for i, n := range p.stays {
		begin, end := 100*float64(from)/float64(all), 100*float64(from+n)/float64(all)
		fmt.Fprintf(b, "#f%d{visibility:hidden;animation:k%d %.2fs step-end infinite}@keyframes k%d{0%%{visibility:hidden}%.3f%%{visibility:visible}%.3f%%{visibility:hidden}}\n", i, i, seconds, i, begin, end)
		from += n
	}
	fmt.Fprintf(b, "@media(prefers-reduced-motion:reduce){g{animation:none!important}#f%d{visibility:visible}}\n", len(p.screens)-1)
}

func line(b *bytes.Buffer, row int, pieces []piece) {
	y := margin + row*rowStep
	for _, one := range pieces {
		x := margin + float64(one.column)*cell
		wide := float64(len([]rune(one.text))) * cell
		if one.ground != 0 {
			fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, x, y, wide, rowStep, colour(one.ground))
		}
		if strings.TrimSpace(one.text) == "" {
			continue
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`, x, y+14, wide, one.attributes(), html.EscapeString(strings.ReplaceAll(one.text, " ", "\u00a0")))
	}
	b.WriteByte('\n')
}

// attributes are the classes and the colour of a piece.
func (p piece) attributes() string {
	var classes []string
	if p.bold {
		classes = append(classes, "b")
	}
	if p.dim {
		classes = append(classes, "d")
	}
	out := ""
	if len(classes) > 0 {
		out += ` class="` + strings.Join(classes, " ") + `"`
	}
	if p.foreground != 0 {
		out += ` style="fill:` + colour(p.foreground) + `"`
	}
	return out
}
