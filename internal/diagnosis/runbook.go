package diagnosis

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Runbook is what to know of a cause, or of another finding: what it means, what to check
// and to change. Its texts are Markdown of one paragraph each, "" where there is nothing to
// say; docs/troubleshooting.md has one section a runbook.
type Runbook struct {
	Code    string // a model.Cause, or another finding's code
	Title   string // what it is, in a few words
	Seen    string // what it is said of
	Clients string // what clients see
	Check   string
	Change  string
	Vain    string // what does not help

	// Of causes alone: the evidence that shows it, what excludes it all the same, and
	// what is said where neither is had. Drops: a dropped packet may be counted under it.
	Holds     string
	Refuted   []string
	Otherwise string
	Drops     bool
}

// IsCause reports whether it is a cause, and no other finding.
func (r *Runbook) IsCause() bool { return r.Holds != "" }

// Runbooks are all there are: the causes in their order of precedence, then the other
// findings.
func Runbooks() []Runbook {
	var out []Runbook
	for _, c := range catalogue() {
		r := c.book
		r.Code, r.Drops = string(c.name), slices.Contains(model.DropCauses(), c.name)
		r.Refuted = c.refutations()
		out = append(out, r)
	}
	return append(out, otherFindings()...)
}

// Explain is the runbook of a cause or another finding; known is false where there is none.
func Explain(code string) (r Runbook, known bool) {
	all := Runbooks()
	i := slices.IndexFunc(all, func(r Runbook) bool { return r.Code == code })
	if i < 0 {
		return Runbook{}, false
	}
	return all[i], true
}

// refutations are the names of what excludes the cause, of all kinds of evidence, each once.
func (c *cause) refutations() []string {
	names := append(append(c.moment.names(), c.around.names()...), c.now.names()...)
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (r *rule[E]) names() (out []string) {
	for i := range r.refuted {
		out = append(out, r.refuted[i].name)
	}
	return out
}
