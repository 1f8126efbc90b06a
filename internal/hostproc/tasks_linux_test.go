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

const captureStat = "7 (java) S 1 7 7 0 -1 4194560 18151 0 5 0 142 33 0 0 20 0 22 0 262266 2667110400 10070 " +
	"18446744073709551615 93981402292224 93981402293001 140725433458720 0 0 0 0 2 16800972 0 0 0 17 1 0 0 0 0 0 " +
	"93981402304784 93981402305552 93981417988096 140725433466443 140725433466512 140725433466512 140725433470926 0\n"
