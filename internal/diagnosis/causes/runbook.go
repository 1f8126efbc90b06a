package causes

import (
	"slices"
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

// Refutations are the names of what excludes the cause, of all kinds of evidence, each once.
func (c *Cause) Refutations() []string {
	names := append(append(c.moment.names(), c.around.names()...), c.Now.names()...)
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
