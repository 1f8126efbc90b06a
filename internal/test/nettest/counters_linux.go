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
	return counters(tb, "netstat", "TcpExt:")
}

// TCP is the same of the Tcp counters.
func TCP(tb testing.TB) func(name string) uint64 {
	tb.Helper()
	return counters(tb, "snmp", "Tcp:")
}

func counters(tb testing.TB, file, protocol string) func(name string) uint64 {
	tb.Helper()
	b, err := os.ReadFile("/proc/thread-self/net/" + file)
	require.NoError(tb, err)
	lines := strings.Split(string(b), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, protocol) })
	require.GreaterOrEqual(tb, at, 0, protocol)
	names, values := strings.Fields(lines[at]), strings.Fields(lines[at+1])
	return func(name string) uint64 {
		tb.Helper()
		i := slices.Index(names, name)
		require.Positive(tb, i, "no counter %s", name)
		n, err := strconv.ParseUint(values[i], 10, 64)
		require.NoError(tb, err)
		return n
	}
}
