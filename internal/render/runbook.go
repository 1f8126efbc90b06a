package render

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
)

// Runbook writes what is to be known of a cause or a finding.
func Runbook(w io.Writer, r *causes.Runbook, o TextOptions) error {
	s := newScreen(o)
	s.paragraph(0, span{r.Code + ": ", bold}, span{unmarked(r.Title), bold})
	for _, part := range []struct{ name, text string }{
		{"Seen", r.Seen}, {"Clients see", r.Clients}, {"Check", r.Check}, {"Change", r.Change}, {"Does not help", r.Vain},
	} {
		if part.text != "" {
			s.blank()
			s.paragraph(answerIndent, span{part.name + ":", bold}, span{text: unmarked(part.text)})
		}
	}
	return s.write(w, "runbook")
}

// Runbooks writes each cause and finding with its title.
func Runbooks(w io.Writer, all []causes.Runbook, o TextOptions) error {
	s := newScreen(o)
	widest := 0
	for i := range all {
		widest = max(widest, len(all[i].Code))
	}
	causes := true
	for i := range all {
		if r := &all[i]; causes && !r.IsCause() {
			causes = false
			s.blank()
		}
		head := []span{{text: blanks(answerIndent)}, {padRight(all[i].Code, widest+2), bold}}
		s.wrapped(head, answerIndent+widest+2, span{text: unmarked(all[i].Title)})
	}
	s.blank()
	s.paragraph(answerIndent, span{"tcpdiag explain CAUSE prints what to check, what to change and what does not help.", dim})
	return s.write(w, "runbooks")
}

// unmarked is a text without Markdown's marks.
func unmarked(text string) string {
	text = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`).ReplaceAllString(text, "$1") // a link's words
	return strings.NewReplacer("**", "", "`", "").Replace(text)
}

// Sentences writes each from the beginning of a line, within the screen's width.
func Sentences(w io.Writer, text []string, o TextOptions) error {
	s := newScreen(o)
	for _, one := range text {
		s.paragraph(0, span{text: printable(one)})
	}
	return s.write(w, "sentences")
}

func (s *screen) write(w io.Writer, what string) error {
	if _, err := io.WriteString(w, s.b.String()); err != nil {
		return fmt.Errorf("render: %s: %w", what, err)
	}
	return nil
}
