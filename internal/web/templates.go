package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

//go:embed assets
var assets embed.FS

// pages draws; the templates are parsed once.
type pages struct{ template *template.Template }

// Style is the page's, for others that are to look like it.
func Style() (string, error) {
	style, err := assets.ReadFile("assets/page.css")
	if err != nil {
		return "", fmt.Errorf("web: %w", err)
	}
	return string(style), nil
}

func newPages() (*pages, error) {
	style, err := Style()
	if err != nil {
		return nil, err
	}
	t, err := template.New("").Funcs(template.FuncMap{
		"number": phrase.Number[int],
		"style":  func() template.CSS { return template.CSS(style) },
	}).ParseFS(assets, "assets/page.html", "assets/incident.html")
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	return &pages{t}, nil
}

// draw executes one of the templates.
func (p *pages) draw(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := p.template.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("web: %w", err)
	}
	return Visible(b.String()), nil
}

// Visible shows what has no shape of its own (controls, bidirectional marks, line separators,
// bytes that are no UTF-8) as escapes, wherever in the page a stranger's text may have put it:
// names are escaped where they are read, and a recording can hold what was never read so.
func Visible(page string) string {
	hidden := func(r rune) bool {
		if ' ' <= r && r <= '~' {
			return false
		}
		return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError
	}
	if utf8.ValidString(page) && !strings.ContainsFunc(page, hidden) {
		return page
	}
	var b strings.Builder
	for len(page) > 0 {
		r, n := utf8.DecodeRuneInString(page)
		if hidden(r) {
			b.WriteString(model.Printable(page[:n]))
		} else {
			b.WriteString(page[:n])
		}
		page = page[n:]
	}
	return b.String()
}

// Report writes the page of one snapshot as a file of its own, to attach to a
// ticket: no script, nothing loaded, every listener whole. command is what it was made by.
func Report(w io.Writer, s *model.Snapshot, version, command string) error {
	p, err := newPages()
	if err != nil {
		return err
	}
	v := newViewOf(s, nil, choice{}, version, s.Time, len(s.Listeners))
	v.Report, v.Command = true, model.Printable(command)
	page, err := p.draw("page", v)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, page)
	return err
}
