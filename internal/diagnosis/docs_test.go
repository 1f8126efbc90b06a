package diagnosis_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/golden"
)

const docs = "../../docs"

// wrapped breaks a paragraph into lines that a page has.
func wrapped(text string) string {
	const width = 95
	var b strings.Builder
	line := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case line == 0:
		case line+1+n > width:
			b.WriteByte('\n')
			line = 0
		default:
			b.WriteByte(' ')
			line++
		}
		b.WriteString(word)
		line += n
	}
	return b.String()
}

// opening is the part of a section that the catalogue has.
func opening(r *causes.Runbook) string {
	var b strings.Builder
	for _, part := range []struct{ name, text string }{
		{"Seen", r.Seen}, {"Clients see", r.Clients}, {"Check", r.Check}, {"Change", r.Change}, {"Does not help", r.Vain},
	} {
		if part.text != "" {
			item := wrapped("* **" + part.name + ":** " + part.text)
			fmt.Fprintf(&b, "%s\n", strings.ReplaceAll(item, "\n", "\n  "))
		}
	}
	return b.String()
}

// section is where a page has one: its opening paragraph, which is the catalogue's.
func section(page, code string) (from, to int, ok bool) {
	head := "\n## " + code + "\n\n"
	i := strings.Index(page, head)
	if i < 0 {
		return 0, 0, false
	}
	from = i + len(head)
	end := strings.Index(page[from:]+"\n\n", "\n\n")
	return from, min(len(page), from+end+1), true
}

// Every cause and every other finding has a section, which begins with what the catalogue
// says. UPDATE=1 go test ./internal/diagnosis -run Sections writes the openings.
func TestSectionsOfTroubleshooting(t *testing.T) {
	file := filepath.Join(docs, "troubleshooting.md")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	page := string(content)
	for _, r := range diagnosis.Runbooks() {
		from, to, ok := section(page, r.Code)
		if os.Getenv("UPDATE") != "" {
			if !ok {
				page = strings.TrimRight(page, "\n") + "\n\n## " + r.Code + "\n\n" + opening(&r)
				continue
			}
			page = page[:from] + opening(&r) + page[to:]
			continue
		}
		require.True(t, ok, "no section %s", r.Code)
		require.Equal(t, opening(&r), page[from:to], "section %s: UPDATE=1 go test ./internal/diagnosis -run Sections", r.Code)
	}
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, []byte(page), 0o600))
	}
}

// The table of the causes: UPDATE=1 go test ./internal/diagnosis -run Table writes it.
func TestTableOfCauses(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# The causes

In the order of precedence: where the evidence shows two of them with the same certainty,
the first is named. A cause holds on positive evidence, and is excluded by each of its
refutations; where neither is had, that is said. The table is drawn from the catalogue
(` + "`internal/diagnosis/causes/catalogue.go`" + `, one file a cause).

| cause | it holds when | it is excluded when | else is said | drops |
|---|---|---|---|---|
`)
	for _, r := range diagnosis.Runbooks() {
		if !r.IsCause() {
			continue
		}
		drops := ""
		if r.Drops {
			drops = "yes"
		}
		fmt.Fprintf(&b, "| [%s](troubleshooting.md#%[1]s): %s | %s | %s | %s | %s |\n",
			r.Code, cell(r.Title), cell(r.Holds), cell(strings.Join(r.Refuted, "; ")), cell(r.Otherwise), drops)
	}
	b.WriteString("\nA cause that drops packets has a series of `tcpdiag_listener_dropped_packets_total`.\n")
	golden.Equal(t, filepath.Join(docs, "causes.md"), b.String())
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// The catalogue is whole: each entry says what a reader needs, and each cause that a packet
// can have is there.
func TestRunbooks(t *testing.T) {
	var codes []string
	for _, r := range diagnosis.Runbooks() {
		require.NotContains(t, codes, r.Code)
		codes = append(codes, r.Code)
		require.NotEmpty(t, r.Title, r.Code)
		require.NotEmpty(t, r.Seen, r.Code)
		if r.IsCause() {
			require.NotEmpty(t, r.Otherwise, r.Code)
		}
		for _, text := range []string{r.Seen, r.Clients, r.Check, r.Change, r.Vain} {
			require.True(t, text == "" || strings.HasSuffix(text, "."), "%s: %s", r.Code, text)
		}
		got, known := diagnosis.Explain(r.Code)
		require.True(t, known)
		require.Equal(t, r, got)
	}
	for _, c := range model.DropCauses() {
		require.Contains(t, codes, string(c))
	}
	_, known := diagnosis.Explain("max_thread")
	require.False(t, known)
}

// Every code that the sources write has a runbook.
func TestEveryFindingHasARunbook(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	below, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	files = append(files, below...)
	code := regexp.MustCompile(`(?:add\(|note\([^\n]*, |Code:\s+)"([a-z_]+)"`)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || filepath.Base(file) == "books.go" {
			continue
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range code.FindAllStringSubmatch(string(content), -1) {
			if strings.HasSuffix(m[1], "_") { // a prefix of several
				continue
			}
			_, known := diagnosis.Explain(m[1])
			require.True(t, known, "%s: %s has no runbook", file, m[1])
			found++
		}
	}
	require.Greater(t, found, 25)
	require.True(t, slices.ContainsFunc(diagnosis.Runbooks(), func(r causes.Runbook) bool { return !r.IsCause() }))
}

// Of each cause it is said whether what it advises is predicted, and where that was tried.
func TestDocsSayWhatIsPredicted(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docs, "predictions.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n## Cause by cause\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	for _, c := range causes.Catalogue() {
		require.Regexp(t, `(?m)^\|.*\x60`+string(c.Name)+`\x60.*\|`, table)
	}
}
