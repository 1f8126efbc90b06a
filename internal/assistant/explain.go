package assistant

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
)

// Runbook is what to check and to change. Its texts are Markdown.
type Runbook struct {
	Cause       string   `json:"cause"`
	Title       string   `json:"title"`
	Seen        string   `json:"seen" jsonschema:"what it is said of"`
	Clients     string   `json:"clients_see,omitempty"`
	Check       string   `json:"check,omitempty"`
	Change      string   `json:"change,omitempty"`
	DoesNotHelp string   `json:"does_not_help,omitempty"`
	Holds       string   `json:"holds,omitempty" jsonschema:"of a cause: the evidence that shows it"`
	Refuted     []string `json:"refuted,omitempty" jsonschema:"of a cause: what excludes it all the same"`
	Otherwise   string   `json:"otherwise,omitempty" jsonschema:"of a cause: what is said where neither is had"`
}

// runbooks are the catalogue's.
func runbooks() (out []Runbook) {
	for _, b := range diagnosis.Runbooks() {
		out = append(out, Runbook{b.Code, b.Title, b.Seen, b.Clients, b.Check, b.Change, b.Vain, b.Holds, b.Refuted, b.Otherwise})
	}
	return out
}

// page is a runbook as Markdown.
func (r *Runbook) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", r.Cause, r.Title)
	for _, part := range []struct{ label, text string }{
		{"Seen", r.Seen}, {"Clients see", r.Clients}, {"Check", r.Check}, {"Change", r.Change}, {"Does not help", r.DoesNotHelp},
	} {
		if part.text != "" {
			fmt.Fprintf(&b, "\n**%s:** %s\n", part.label, part.text)
		}
	}
	return b.String()
}

// explainIn names a runbook.
type explainIn struct {
	Cause string `json:"cause" jsonschema:"a cause or the code of a finding, as snapshot and report have it"`
}

func (s *server) explain() tool {
	return tool{
		name: "explain", title: "Runbook of a cause",
		about: "Explains a cause: what was seen, what clients see, what to check, what to change, and what does not help. It is written for every server: the numbers of this one are in snapshot.",
		input: func(in *jsonschema.Schema) {
			for _, r := range s.runbooks {
				in.Properties["cause"].Enum = append(in.Properties["cause"].Enum, r.Cause)
			}
		},
	}
}

func (s *server) explainCause(_ context.Context, _ *mcp.CallToolRequest, in explainIn) (Runbook, *nothing, error) {
	i := slices.IndexFunc(s.runbooks, func(r Runbook) bool { return r.Cause == in.Cause }) // the schema has no other
	return s.runbooks[i], nil, nil
}
