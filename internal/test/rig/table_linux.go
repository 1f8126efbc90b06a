package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// Row is what came of a case.
type Row struct {
	Name, Truth, Said string
	Unknown           bool     // what is right to say here is that it is not known
	Wrong             []string // what was said and should not have been, or the other way round
	Skipped           string   // or undecided, and why

	Cells []string // of a table that has columns of its own, after the name
}

// Result is the last cell.
func (r Row) Result() string {
	switch {
	case len(r.Wrong) > 0:
		return "**wrong**: " + strings.Join(r.Wrong, "; ")
	case r.Skipped != "":
		return r.Skipped
	case r.Unknown:
		return "unknown, and says so"
	}
	return "right"
}

// line is the row in Markdown.
func (r Row) line() string {
	cells := append([]string{r.Name}, r.Cells...)
	if r.Cells == nil {
		cells = []string{r.Name, r.Truth, r.Said, r.Result()}
	}
	for i, text := range cells {
		cells[i] = strings.ReplaceAll(strings.ReplaceAll(text, "|", `\|`), "\n", " ")
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// Table is a file of Markdown whose last part is a table with a row for each case.
// Rows of cases that were not run stay as they are in the file.
type Table struct {
	path, head string
	names      []string
	lines      map[string]string // by name
	heading    func(lines []string) string
}

// Open reads the table of a file (from the root of the repository). The head is all
// that stands before the first row, of cells the text of each column.
func Open(path, head string, names []string) *Table {
	t := &Table{path: path, head: head, names: names, lines: make(map[string]string)}
	if root, err := ModuleRoot(); err == nil {
		t.path = filepath.Join(root, path)
	}
	text, _ := os.ReadFile(t.path)
	for line := range strings.Lines(string(text)) {
		if cells := strings.SplitN(line, "|", 3); len(cells) == 3 {
			t.lines[strings.TrimSpace(cells[1])] = strings.TrimRight(line, "\n")
		}
	}
	return t
}

// Cases runs each of the cases as the subtest of its name, which has its row in the table of a file.
func Cases[C any](t *testing.T, path, head string, cases []C, of func(C) (name string, run func(*Case))) {
	names := make([]string, len(cases))
	runs := make([]func(*Case), len(cases))
	for i, c := range cases {
		names[i], runs[i] = of(c)
	}
	table := Open(path, head, names)
	for i, name := range names {
		t.Run(name, func(t *testing.T) { runs[i](New(t, table, name)) })
	}
}

// Head has the text before the rows made of them.
func (t *Table) Head(text func(lines []string) string) { t.heading = text }

// put replaces a row, and writes the file where the results of proofs are to be
// written.
func (t *Table) put(r Row) {
	t.lines[strings.ReplaceAll(r.Name, "|", `\|`)] = r.line()
	if !proof.Full() {
		return
	}
	if err := os.WriteFile(t.path, []byte(t.String()), 0o644); err != nil { //nolint:gosec // docs
		fmt.Fprintln(os.Stderr, "rig:", err)
	}
}

// String is the whole file.
func (t *Table) String() string {
	var lines []string
	for _, name := range t.names {
		if line := t.lines[strings.ReplaceAll(name, "|", `\|`)]; line != "" {
			lines = append(lines, line)
		}
	}
	head := t.head
	if t.heading != nil {
		head = t.heading(lines)
	}
	return head + strings.Join(lines, "\n") + "\n"
}

// Record writes the results of a proof to a file (from the root of the repository),
// where they are to be written.
func Record(t testing.TB, path, text string) {
	t.Helper()
	if !proof.Full() {
		return
	}
	root, err := ModuleRoot()
	if err == nil {
		err = os.WriteFile(filepath.Join(root, path), []byte(text), 0o644) //nolint:gosec // docs
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Read is the text of such a file, "" where there is none.
func Read(path string) string {
	root, err := ModuleRoot()
	if err != nil {
		return ""
	}
	text, _ := os.ReadFile(filepath.Join(root, path))
	return string(text)
}
