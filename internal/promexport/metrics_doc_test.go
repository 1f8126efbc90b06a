package promexport_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/promexport"
)

const metricsPage = "../../docs/metrics.md"

// The table in docs/metrics.md is written by UPDATE=1 go test ./internal/promexport.
func TestMetricsTableIsNotStale(t *testing.T) {
	var want bytes.Buffer
	want.WriteString("# Metrics\n\nGenerated from the code: `UPDATE=1 go test ./internal/promexport -run Table`.\n\n")
	require.NoError(t, promexport.WriteTable(&want))
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(metricsPage, want.Bytes(), 0o600))
	}
	got, err := os.ReadFile(metricsPage)
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got), "run UPDATE=1 go test ./internal/promexport -run Table")
}
