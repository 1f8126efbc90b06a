package openfiles

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// TestMain doubles as the processes that the tests read.
func TestMain(m *testing.M) { proctest.Main(m, nil) }

func realProc(t *testing.T) hostproc.FS {
	t.Helper()
	fs, err := hostproc.NewFS("/proc")
	require.NoError(t, err)
	return fs
}
