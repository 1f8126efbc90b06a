package nettest

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Hurry lets this process go before the others of the machine until the test
// ends, where it may (CAP_SYS_NICE): for tests that compare times, next to
// compilers and other packages' tests.
func Hurry(tb testing.TB) {
	tb.Helper()
	const urgent = -15
	renice(tb, urgent)
	tb.Cleanup(func() { renice(tb, 0) })
}

// renice gives all threads of this process a priority; new ones inherit it.
func renice(tb testing.TB, priority int) {
	tb.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	require.NoError(tb, err)
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		require.NoError(tb, err)
		err = unix.Setpriority(unix.PRIO_PROCESS, tid, priority)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ESRCH) { // not for us to do; ended meanwhile
			continue
		}
		require.NoError(tb, err)
	}
}
