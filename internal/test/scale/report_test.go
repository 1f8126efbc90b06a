package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReport(t *testing.T) {
	var r report
	r.begin(options{Sockets: 10, Namespaces: 2, Ends: 20, Calm: time.Minute, Only: "H1"})
	r.add(row{Scenario: "H1", What: "memory", Budget: "≤ 40 MiB", Ours: mebibytes(30 << 20), Met: true},
		row{Scenario: "H1", What: "cause", Budget: "≤ 2 s", Ours: seconds(22 * time.Second)},
		row{Scenario: "H1", What: "share", Budget: reported, Ours: percent(0.0125)})
	r.end()
	require.Contains(t, r.markdown(), "| H1 | memory | ≤ 40 MiB | 30.0 MiB | met |  |\n")
	require.Contains(t, r.markdown(), "| H1 | cause | ≤ 2 s | 22.00 s | **missed** |  |\n")
	require.Contains(t, r.markdown(), "| H1 | share | reported | 1.25 % |  |  |\n")
	require.Contains(t, r.markdown(), "-sockets 10 -namespaces 2 -ends 20 -calm 1m0s -only H1")
}

func TestWanted(t *testing.T) {
	require.True(t, options{}.wanted("H1"))
	require.True(t, options{Only: "H1,H4"}.wanted("H4"))
	require.False(t, options{Only: "H1,H4"}.wanted("H2"))
}
