package render

import (
	"io"
	"regexp"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// Runbook writes what is to be known of a cause or a finding.
func Runbook(w io.Writer, r *causes.Runbook, o TextOptions) error {
	s := term.New(o.Width, o.Color)
	s.Paragraph(0, term.Bold.Of(r.Code+": "), term.Bold.Of(unmarked(r.Title)))
	for _, part := range []struct{ name, text string }{
		{"Seen", r.Seen}, {"Clients see", r.Clients}, {"Check", r.Check}, {"Change", r.Change}, {"Does not help", r.Vain},
	} {
		if part.text != "" {
			s.Blank()
			s.Paragraph(answerIndent, term.Bold.Of(part.name+":"), term.Text(unmarked(part.text)))
		}
	}
	return s.Write(w, "runbook")
}

// Runbooks writes each cause and finding with its title.
func Runbooks(w io.Writer, all []causes.Runbook, o TextOptions) error {
	s := term.New(o.Width, o.Color)
	widest := 0
	for i := range all {
		widest = max(widest, len(all[i].Code))
	}
	causes := true
	for i := range all {
		if r := &all[i]; causes && !r.IsCause() {
			causes = false
			s.Blank()
		}
		head := []term.Span{term.Text(term.Blanks(answerIndent)), term.Bold.Of(term.PadRight(all[i].Code, widest+2))}
		s.Wrapped(head, answerIndent+widest+2, term.Text(unmarked(all[i].Title)))
	}
	s.Blank()
	s.Paragraph(answerIndent, term.Dim.Of("tcpdiag explain CAUSE prints what to check, what to change and what does not help."))
	return s.Write(w, "runbooks")
}

// unmarked is a text without Markdown's marks.
func unmarked(text string) string {
	text = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`).ReplaceAllString(text, "$1") // a link's words
	return strings.NewReplacer("**", "", "`", "").Replace(text)
}

// Sentences writes each from the beginning of a line, within the screen's width.
func Sentences(w io.Writer, text []string, o TextOptions) error {
	s := term.New(o.Width, o.Color)
	for _, one := range text {
		s.Paragraph(0, term.Text(term.Printable(one)))
	}
	return s.Write(w, "sentences")
}
