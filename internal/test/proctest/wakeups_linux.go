package proctest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Wakeups is how often threads of this process go to sleep, and are woken, while do runs.
func Wakeups(t testing.TB, do func()) (n int) {
	t.Helper()
	before := sleeps(t)
	do()
	for thread, now := range sleeps(t) {
		n += now - before[thread]
	}
	return n
}

// sleeps is how often each thread has gone to sleep so far.
func sleeps(t testing.TB) map[string]int {
	t.Helper()
	all := make(map[string]int)
	files, err := filepath.Glob("/proc/self/task/*/status")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		_, after, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:\t")
		count, _, _ := strings.Cut(after, "\n")
		k, err := strconv.Atoi(count)
		require.NoError(t, err, "%s", text)
		all[file] = k
	}
	return all
}
