package term

import (
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Style is the parameters of an ANSI "select graphic rendition" sequence, from
// the sixteen colours that every terminal's theme defines. "" is plain.
type Style string

// The styles.
const (
	Plain Style = ""
	Bold  Style = "1"
	Dim   Style = "2"
	Good  Style = "32"
	Warn  Style = "33"
	Bad   Style = "1;31"

	CommandStyle Style = "36"
	ChangeStyle  Style = "1;33"
	FixStyle     Style = "1;33"

	BadgeGood Style = "1;30;42"
	BadgeWarn Style = "1;30;43"
	BadgeBad  Style = "1;97;41"
)

// Of is a text in this style.
func (s Style) Of(text string) Span { return Span{text, s} }

// Text is one in no style.
func Text(text string) Span { return Span{Text: text} }

// Span is a piece of text in one style.
type Span struct {
	Text  string
	style Style
}

// Width is in columns.
func (s Span) Width() int { return lipgloss.Width(s.Text) }

// ANSI is the span as a terminal wants it.
func (s Span) ANSI(color bool) string {
	if !color || s.style == Plain || s.Text == "" {
		return s.Text
	}
	return "\x1b[" + string(s.style) + "m" + s.Text + "\x1b[0m"
}

// Spaced is a word of the JSON in a sentence: "in_service" is "in service".
func Spaced(word string) string { return strings.ReplaceAll(word, "_", " ") }

// Printable replaces what could move the cursor or change colours: command
// names, paths and settings come from other people's processes.
func Printable(s string) string {
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

// StatusStyle is how what belongs to a status is coloured.
func StatusStyle(st model.Status) Style {
	switch st {
	case model.StatusOK:
		return Good
	case model.StatusWarning, model.StatusSaturated:
		return Warn
	default:
		return Bad
	}
}

// badgeStyle is the same as a block.
func badgeStyle(st model.Status) Style {
	switch st {
	case model.StatusOK:
		return BadgeGood
	case model.StatusWarning, model.StatusSaturated:
		return BadgeWarn
	default:
		return BadgeBad
	}
}

// Badge is a coloured block, or just the word.
func (s *Screen) Badge(st model.Status) Span { return s.BadgeOf(st, statusWord(st)) }

// BadgeOf is the same with another word.
func (s *Screen) BadgeOf(st model.Status, word string) Span {
	if s.Color {
		word = " " + word + " "
	}
	return Span{word, badgeStyle(st)}
}

// statusWord is a status on a screen.
func statusWord(st model.Status) string {
	if st == model.StatusLosing {
		return "LOSING CLIENTS"
	}
	return strings.ToUpper(st.String())
}

// StatusNamed is the status of that name in a document; ok where there is none.
func StatusNamed(name string) model.Status {
	for st := model.StatusOK; st < model.NumStatuses; st++ {
		if st.String() == name {
			return st
		}
	}
	return model.StatusOK
}
