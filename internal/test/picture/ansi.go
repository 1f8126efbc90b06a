package main

import (
	"strings"
)

// style is how a piece of text is drawn. Colours are the numbers of SGR, 0 for none.
type style struct {
	bold, dim          bool
	foreground, ground int
}

// piece is text in one style, from a column on.
type piece struct {
	column int
	text   string
	style
}

// screen are the lines of a terminal.
type screen [][]piece

// parse reads text with colours. Every character is one column wide, as those of
// tcpdiag are.
func parse(text string) (out screen) {
	var now style
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		var pieces []piece
		column := 0
		for part := range strings.SplitSeq(line, "\x1b[") {
			if column > 0 || part != line {
				codes, rest, found := strings.Cut(part, "m")
				if found && strings.Trim(codes, "0123456789;") == "" {
					now = now.with(codes)
					part = rest
				}
			}
			if part != "" {
				pieces = append(pieces, piece{column, part, now})
				column += len([]rune(part))
			}
		}
		out = append(out, pieces)
	}
	return out
}

// with is the style after a sequence of SGR parameters.
func (l style) with(codes string) style {
	for code := range strings.SplitSeq(codes, ";") {
		n := 0
		for _, r := range code {
			n = n*10 + int(r-'0')
		}
		switch {
		case n == 0:
			l = style{}
		case n == 1:
			l.bold = true
		case n == 2:
			l.dim = true
		case n == 22:
			l.bold, l.dim = false, false
		case n == 39:
			l.foreground = 0
		case n == 49:
			l.ground = 0
		case n >= 30 && n <= 37, n >= 90 && n <= 97:
			l.foreground = n
		case n >= 40 && n <= 47:
			l.ground = n
		}
	}
	return l
}
