package openfiles

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func TestOpenFiles(t *testing.T) {
	fs := hostfs.Real(t)
	counting := fs.Listing() // a kernel before 6.2
	few := proctest.Start(t, "sockets", "0")
	many := proctest.Start(t, "sockets", "700")
	for name, fs := range map[string]hostproc.FS{"by size": fs, "by counting": counting} {
		t.Run(name, func(t *testing.T) {
			if name == "by size" && !fs.CountsOpenFiles() {
				t.Skip("this kernel is older than 6.2")
			}
			base, err := Count(fs, few.PID())
			require.NoError(t, err)
			require.GreaterOrEqual(t, base, 3)
			n, err := Count(fs, many.PID())
			require.NoError(t, err)
			require.Equal(t, base+700, n)
			allocs := testing.AllocsPerRun(3, func() { _, _ = Count(fs, many.PID()) })
			require.Less(t, allocs, 350.0, "none per descriptor")
		})
	}
}

func TestOpenFilesLimit(t *testing.T) {
	fs := hostfs.Real(t)
	c := proctest.Start(t, "wait", "")
	require.NoError(t, unix.Prlimit(c.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 123, Max: 456}, nil))
	n, err := Limit(fs, c.PID())
	require.NoError(t, err)
	require.Equal(t, 123, n)
}

func TestOpenFilesUnlimited(t *testing.T) {
	dir := proctest.Fake(t, map[string]string{
		"5/limits": "Limit                     Soft Limit           Hard Limit           Units     \n" +
			"Max open files            unlimited            unlimited            files     \n",
	})
	fs := hostfs.At(t, dir)
	n, err := Limit(fs, 5)
	require.NoError(t, err)
	require.Equal(t, math.MaxInt, n)
}
