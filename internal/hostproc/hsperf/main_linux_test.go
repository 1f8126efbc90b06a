package hsperf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// TestMain doubles as the processes that the tests read.
func TestMain(m *testing.M) { proctest.Main(m, nil) }

// fakeRoot is a proc in which process 7 has dir for its root.
func fakeRoot(t *testing.T, dir string) hostproc.FS {
	t.Helper()
	mount := proctest.Fake(t, nil)
	require.NoError(t, os.Mkdir(filepath.Join(mount, "7"), 0o700))
	require.NoError(t, os.Symlink(dir, filepath.Join(mount, "7", "root")))
	fs := hostfs.At(t, mount)
	return fs
}
