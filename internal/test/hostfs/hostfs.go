// Package hostfs opens the folders in the form of /proc that tests read.
package hostfs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/memory"
)

// Real is the machine's own.
func Real(t testing.TB) hostproc.FS {
	t.Helper()
	return At(t, "/proc")
}

// At is that at a folder.
func At(t testing.TB, dir string) hostproc.FS {
	t.Helper()
	fs, err := hostproc.NewFS(dir)
	require.NoError(t, err)
	return fs.WithMemory(memory.Here{})
}
