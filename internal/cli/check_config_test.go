package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckConfig(t *testing.T) {
	const path = "agentcmd/testdata/everything.yml"
	code, stdout, stderr := call("agent", "--config", path, "--check-config")
	require.Zero(t, code, stderr)
	require.Equal(t, path+" is valid\n", stdout)

	wrong := filepath.Join(t.TempDir(), "tcpdiag.yml")
	require.NoError(t, os.WriteFile(wrong, []byte("al: true\nport: 80\n"), 0o600))
	code, stdout, stderr = call("agent", "--config", wrong, "--check-config")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Equal(t, "tcpdiag: "+wrong+`:1: unknown key "al": did you mean "all"?
tcpdiag: `+wrong+`:2: unknown key "port": it belongs under "targets"
`, stderr)
}
