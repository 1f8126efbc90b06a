package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

const (
	// runs is where the last whole run of each proof is written down, and list what is drawn from them.
	runs = "docs/results/runs"
	list = "docs/results/README.md"

	listBegins = "<!-- runs: make stale -->\n"
	listEnds   = "<!-- /runs -->\n"
)

// stamp is the last whole run of a proof: "2026-11-28 bd5d4a2ca1 40 min passed, 3 tests skipped".
type stamp struct{ day, commit, minutes, outcome string }

func (s stamp) String() string {
	return fmt.Sprintf("%s %s %s min %s", s.day, s.commit, s.minutes, s.outcome)
}

// last is the proof's, below the root of the repository.
func last(root string, p proof.Proof) (s stamp, found bool) {
	text, err := os.ReadFile(filepath.Join(root, runs, p.Name))
	if err != nil {
		return stamp{}, false
	}
	run, outcome, found := strings.Cut(strings.TrimSpace(string(text)), " min ")
	_, err = fmt.Sscan(run, &s.day, &s.commit, &s.minutes)
	s.outcome = outcome
	return s, found && err == nil
}

// table is all proofs with the last whole run of each. What is fixed and what a run changes are lines of
// their own, so that branches with runs of two proofs can be merged.
func table(root string) string {
	var b strings.Builder
	b.WriteString("<div class=\"wide runs\" tabindex=\"0\">\n<table>\n<thead><tr><th>proof</th><th>outcome</th><th>day</th><th>minutes</th><th>commit</th></tr></thead>\n<tbody>\n")
	for _, p := range proof.All() {
		fmt.Fprintf(&b, "<tr><td>%s</td>\n", p.Name)
		if s, found := last(root, p); found {
			fmt.Fprintf(&b, "<td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", html.EscapeString(s.outcome), s.day, s.minutes, html.EscapeString(s.commit))
		} else {
			b.WriteString("<td>never run whole</td><td></td><td></td><td></td></tr>\n")
		}
	}
	b.WriteString("</tbody>\n</table>\n</div>\n")
	return b.String()
}

// drawn is the list's page with the table as it is now, whatever stood there.
func drawn(root string) (page []byte, err error) {
	text, err := os.ReadFile(filepath.Join(root, list))
	if err != nil {
		return nil, err
	}
	before, rest, begins := bytes.Cut(text, []byte(listBegins))
	_, after, ends := bytes.Cut(rest, []byte(listEnds))
	if !begins || !ends {
		return nil, fmt.Errorf("%s has no lines %q and %q", list, listBegins, listEnds)
	}
	return bytes.Join([][]byte{before, []byte(listBegins), []byte(table(root)), []byte(listEnds), after}, nil), nil
}

// draw writes the table.
func draw(root string) error {
	page, err := drawn(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, list), page, 0o644) //nolint:gosec // docs
}
