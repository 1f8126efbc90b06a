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

// theme are a terminal's colours: of its ground, of plain text, and by SGR number.
type theme struct {
	ground, text string
	colours      map[int]string
}

func dark() theme {
	return theme{"#0d1117", "#e6edf3", map[int]string{
		30: "#0d1117", 31: "#ff7b72", 32: "#3fb950", 33: "#e3b341", 36: "#76e3ea", 41: "#b62324", 42: "#3fb950", 43: "#d29922", 97: "#ffffff",
	}}
}

// light are the colours of a terminal with a white ground, as they come with Ubuntu and macOS.
func light() theme {
	return theme{"#ffffff", "#1f2328", map[int]string{
		30: "#000000", 31: "#c91b00", 32: "#00a33f", 33: "#a07500", 36: "#008a96", 41: "#c91b00", 42: "#00a33f", 43: "#c7a100", 97: "#ffffff",
	}}
}

// colour is that of an SGR number.
func (t *theme) colour(n int) string {
	if c, ok := t.colours[n]; ok {
		return c
	}
	return t.text
}

// picture is what a terminal showed, one screen after the other.
type picture struct {
	columns, rows int
	every         time.Duration
	title         string
	theme         theme
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
	b.WriteString("text{font:14px ui-monospace,\"DejaVu Sans Mono\",Menlo,Consolas,monospace;fill:" + p.theme.text + ";white-space:pre}\n.b{font-weight:700}.d{opacity:.62}\n")
	p.turns(&b)
	fmt.Fprintf(&b, "</style>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"%s\"/>\n", p.theme.ground)
	for i, s := range p.screens {
		fmt.Fprintf(&b, "<g id=\"f%d\">\n", i)
		for row, pieces := range s {
			p.line(&b, row, pieces)
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

func (p *picture) line(b *bytes.Buffer, row int, pieces []piece) {
	y := margin + row*rowStep
	for _, one := range pieces {
		x := margin + float64(one.column)*cell
		wide := float64(len([]rune(one.text))) * cell
		if one.ground != 0 {
			fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, x, y, wide, rowStep, p.theme.colour(one.ground))
		}
		if strings.TrimSpace(one.text) == "" {
			continue
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`, x, y+14, wide, one.attributes(&p.theme), html.EscapeString(strings.ReplaceAll(one.text, " ", "\u00a0")))
	}
	b.WriteByte('\n')
}

// attributes are the classes and the colour of a piece.
func (p piece) attributes(t *theme) string {
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
		out += ` style="fill:` + t.colour(p.foreground) + `"`
	}
	return out
}
