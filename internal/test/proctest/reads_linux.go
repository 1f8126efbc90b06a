package proctest

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Reads counts the read calls of a function, by the kernel's own count of this thread, which
// the function must not leave.
func Reads(t testing.TB, do func()) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	count := func() int {
		data, err := os.ReadFile("/proc/thread-self/io")
		if err != nil {
			t.Skip("the kernel does not count reads: ", err)
		}
		_, rest, _ := strings.Cut(string(data), "syscr: ")
		n, err := strconv.Atoi(rest[:strings.IndexByte(rest, '\n')])
		require.NoError(t, err)
		return n
	}
	idle := -count() + count()
	before := count()
	do()
	return count() - before - idle
}

// OpenFiles is how many this process has.
func OpenFiles(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}
