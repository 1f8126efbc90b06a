package hostproc

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func TestOpenFiles(t *testing.T) {
	fs := realProc(t)
	counting := fs
	counting.fdCount = false // a kernel before 6.2
	few := proctest.Start(t, "sockets", "0")
	many := proctest.Start(t, "sockets", "700")
	for name, fs := range map[string]FS{"by size": fs, "by counting": counting} {
		t.Run(name, func(t *testing.T) {
			if name == "by size" && !fs.fdCount {
				t.Skip("this kernel is older than 6.2")
			}
			base, err := fs.OpenFiles(few.PID())
			require.NoError(t, err)
			require.GreaterOrEqual(t, base, 3)
			n, err := fs.OpenFiles(many.PID())
			require.NoError(t, err)
			require.Equal(t, base+700, n)
			allocs := testing.AllocsPerRun(3, func() { _, _ = fs.OpenFiles(many.PID()) })
			require.Less(t, allocs, 350.0, "none per descriptor")
		})
	}
}

func TestCountsDescriptors(t *testing.T) {
	empty := t.TempDir() + "/fd"
	require.NoError(t, os.WriteFile(empty, nil, 0o600)) // of size 0, as fd is before 6.2
	require.False(t, countsDescriptors(empty))
	require.False(t, countsDescriptors(t.TempDir()+"/nothing"))
	require.Equal(t, kernelAtLeast(t, 6, 2), countsDescriptors("/proc/self/fd"))
}

func kernelAtLeast(t *testing.T, major, minor int) bool {
	t.Helper()
	release, err := realProc(t).KernelRelease()
	require.NoError(t, err)
	parts := strings.SplitN(release, ".", 3)
	require.GreaterOrEqual(t, len(parts), 2, release)
	a, err := strconv.Atoi(parts[0])
	require.NoError(t, err)
	b, err := strconv.Atoi(parts[1])
	require.NoError(t, err)
	return a > major || a == major && b >= minor
}

func TestOpenFilesLimit(t *testing.T) {
	fs := realProc(t)
	c := proctest.Start(t, "wait", "")
	require.NoError(t, unix.Prlimit(c.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 123, Max: 456}, nil))
	n, err := fs.OpenFilesLimit(c.PID())
	require.NoError(t, err)
	require.Equal(t, 123, n)
}

func TestOpenFilesUnlimited(t *testing.T) {
	dir := proctest.Fake(t, map[string]string{
		"5/limits": "Limit                     Soft Limit           Hard Limit           Units     \n" +
			"Max open files            unlimited            unlimited            files     \n",
	})
	fs, err := NewFS(dir)
	require.NoError(t, err)
	n, err := fs.OpenFilesLimit(5)
	require.NoError(t, err)
	require.Equal(t, math.MaxInt, n)
}
