package render

import (
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// style is the parameters of an ANSI "select graphic rendition" sequence, from
// the sixteen colours that every terminal's theme defines. "" is plain.
type style string

const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
	good  style = "32"
	warn  style = "33"
	bad   style = "1;31"

	commandStyle style = "36"
	changeStyle  style = "1;33"
	fixStyle     style = "1;33"

	badgeGood style = "1;30;42"
	badgeWarn style = "1;30;43"
	badgeBad  style = "1;97;41"
)

// span is a piece of text in one style.
type span struct {
	text  string
	style style
}

func (s span) width() int { return lipgloss.Width(s.text) }

// ansi is the span as a terminal wants it.
func (s span) ansi(color bool) string {
	if !color || s.style == plain || s.text == "" {
		return s.text
	}
	return "\x1b[" + string(s.style) + "m" + s.text + "\x1b[0m"
}

// spaced is a word of the JSON in a sentence: "in_service" is "in service".
func spaced(word string) string { return strings.ReplaceAll(word, "_", " ") }

// printable replaces what could move the cursor or change colours: command
// names, paths and settings come from other people's processes.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		default:
			return '?'
		}
	}, s)
}
