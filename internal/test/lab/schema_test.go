package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConforms(t *testing.T) {
	t.Chdir("../../..")
	document, err := os.ReadFile("internal/render/testdata/a5_clients.json")
	require.NoError(t, err)
	require.NoError(t, conforms(document))
	require.ErrorContains(t, conforms([]byte(`{"schema": "tcpdiag.snapshot/v1", "listeners": 7}`)), "listeners")
}
