package lab

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConforms(t *testing.T) {
	t.Chdir("../../..")
	document, err := os.ReadFile("internal/render/testdata/a5_clients.json")
	require.NoError(t, err)
	require.NoError(t, conforms(snapshotSchema, document))
	require.ErrorContains(t, conforms(snapshotSchema, []byte(`{"schema": "tcpdiag.snapshot/v1", "listeners": 7}`)), "listeners")
}
