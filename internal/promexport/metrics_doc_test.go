package promexport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/promexport"
	"github.com/tcpdiag/tcpdiag/internal/test/golden"
)

// The table in docs/metrics.md is written by UPDATE=1 go test ./internal/promexport.
func TestMetricsTableIsNotStale(t *testing.T) {
	want := "# Metrics\n\nGenerated from the code: `UPDATE=1 go test ./internal/promexport -run Table`.\n\n" + metricsTable()
	golden.Equal(t, "../../docs/metrics.md", want)
}

func TestTheTableNamesEveryMetric(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(metricsTable()), "\n")
	require.Len(t, lines, 2+len(promexport.Metrics()))
	for i, d := range promexport.Metrics() {
		require.Equal(t, 5, strings.Count(lines[i+2], "|"), lines[i+2])
		require.Contains(t, lines[i+2], "`"+d.Name+"`")
	}
}

// metricsTable has a row for every metric.
func metricsTable() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range promexport.Metrics() {
		labels := ""
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, labels, strings.ReplaceAll(d.Help, "|", `\|`))
	}
	return b.String()
}
