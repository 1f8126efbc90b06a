package hostproc

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func TestThreadNames(t *testing.T) {
	fs := realProc(t)
	c := proctest.Start(t, "threads", "http-nio-8080-exec-1,http-nio-8080-exec-2,odd name) (")
	var names []string
	var tids []int
	require.NoError(t, fs.ThreadNames(c.PID(), func(tid int, comm string) {
		tids = append(tids, tid)
		names = append(names, comm)
	}))
	require.Equal(t, c.PID(), tids[0], "the main thread comes first")
	slices.Sort(tids) // the kernel lists them by age, and numbers start again at pid_max
	require.Len(t, slices.Compact(tids), len(names), "each once")
	require.Contains(t, names, "odd name) (")
	require.Equal(t, 2, len(names)-len(slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "http-nio-8080-e" })))
}
