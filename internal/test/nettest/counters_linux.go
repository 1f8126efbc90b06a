package nettest

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TCPExt reads the TcpExt counters of the calling thread's namespace, all at one
// moment. What it returns answers with one by its name, and fails the test where
// the kernel has none of it.
func TCPExt(tb testing.TB) func(name string) uint64 {
	tb.Helper()
	b, err := os.ReadFile("/proc/thread-self/net/netstat")
	require.NoError(tb, err)
	lines := strings.SplitN(string(b), "\n", 3)
	names, values := strings.Fields(lines[0]), strings.Fields(lines[1])
	require.Equal(tb, "TcpExt:", names[0])
	return func(name string) uint64 {
		tb.Helper()
		i := slices.Index(names, name)
		require.Positive(tb, i, "no counter %s", name)
		n, err := strconv.ParseUint(values[i], 10, 64)
		require.NoError(tb, err)
		return n
	}
}
