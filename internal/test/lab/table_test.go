package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMarkdownKeepsEachRowOnItsLine(t *testing.T) {
	rows := []row{
		{Name: "A9", Load: "10 clients; connect 400 ms", Clients: "3 ok", Said: "**losing** `max_connections`", Plan: "3 ok", Seconds: 30},
		{Name: "C1", Load: "5 | 6", Clients: "5 ok", Wrong: []string{"status ok, should be\nsaturated", "cause"}, Seconds: 90},
		{Name: "D2", Broken: "no Java 25"},
	}
	got := string(markdown(environment{Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Kernel: "6.18", CPU: "Some CPU", Cores: 2, Versions: []string{"k6 v1", "Java 17"}, LoadBefore: "0.1, 0.2, 0.3"}, rows))
	require.Contains(t, got, "\n| A9 | 10 clients<br>connect 400 ms | 3 ok | **losing** `max_connections` | 3 ok | yes |\n")
	require.Contains(t, got, "\n| C1 | 5 \\| 6 | 5 ok |  | – | NO: status ok, should be saturated<br>cause |\n")
	require.Contains(t, got, "\n| D2 |  |  |  | – | could not be run: no Java 25 |\n")
	require.Contains(t, got, "on 2026-01-02 03:04:")
	require.Contains(t, got, "Linux 6.18 on 2 × Some CPU; k6 v1, Java 17. Load of the machine before (1, 5, 15 min): 0.1, 0.2, 0.3.")
	require.Contains(t, got, "1 of 3 agree, 2 min.")
}

func TestReplaceRows(t *testing.T) {
	e := environment{Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), LoadBefore: "0.1, 0.2, 0.3"}
	old := markdown(e, []row{{Name: "A1", Wrong: []string{"x"}}, {Name: "A10", Clients: "as before"}, {Name: "B1", Wrong: []string{"y"}}})
	got := string(replaceRows(old, e, []row{{Name: "A1", Clients: "anew"}}))
	require.Contains(t, got, "\n| A1 |  | anew |  | – | yes |\n| A10 |  | as before |  | – | yes |\n| B1 |  |  |  | – | NO: y |\n")
	require.Contains(t, got, " 2 of 3 agree, ")
	require.True(t, strings.HasSuffix(got, "\n\nRun again by themselves on 2026-01-02 03:04, load of the machine before: 0.1, 0.2, 0.3: A1.\n"), got)
}

func TestTable(t *testing.T) {
	var b strings.Builder
	printTable(&b, []row{{Name: "A9", Clients: "3 ok; more", Said: "**losing** `max_connections` (accept_queue), 1 in service", Plan: "3 ok", Wrong: []string{"x"}}})
	require.Equal(t, `
SCENARIO  CLIENTS  TCPDIAG                                PLAN  AGREE
A9        3 ok …   losing max_connections (accept_queue)  3 ok  NO
0 of 1 agree, 0 min.
`, b.String())
}

func TestScenariosHaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range scenarios() {
		require.False(t, seen[s.name], s.name)
		seen[s.name] = true
		require.NotEmpty(t, s.load, s.name)
		require.NotNil(t, s.run, s.name)
		require.Equal(t, strings.HasPrefix(s.load, "k6"), s.needsK6, s.name)
		require.Equal(t, strings.HasPrefix(s.load, "Locust"), s.locust, s.name)
	}
	for _, published := range strings.Fields("A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 B1 B2 B3 C1 C2 C3 C4 C5 D1 D2 E1 E2 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12") {
		require.True(t, seen[published] || has(seen, published+"-"), published)
	}
}

func has(names map[string]bool, prefix string) bool {
	for name := range names {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func TestChoose(t *testing.T) {
	chosen, err := choose("^A9$")
	require.NoError(t, err)
	require.Len(t, chosen, 1)
	all, err := choose("")
	require.NoError(t, err)
	require.Len(t, all, len(scenarios()))
	_, err = choose("^no such$")
	require.ErrorContains(t, err, `no scenario matches "^no such$"`)
	_, err = choose("(")
	require.ErrorContains(t, err, "-run")
}

func TestResultsPath(t *testing.T) {
	require.Equal(t, "docs/results/lab.md", resultsPath("", "", false))
	require.Equal(t, "docs/results/lab.md", resultsPath("", "A9", true))
	require.Empty(t, resultsPath("", "A9", false), "a part is no result")
	require.Empty(t, resultsPath("-", "", false))
	require.Equal(t, "x.md", resultsPath("x.md", "A9", false))
}
