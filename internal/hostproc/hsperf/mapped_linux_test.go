package hsperf

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

// FuzzMapped reads lists of mappings, whose paths are the process's choice: what
// is taken for performance data is the process's own pid, one folder deep.
func FuzzMapped(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("7f00-7f01 rw-s 00000000 00:31 7 /tmp/hsperfdata_root/42\n"))
	m.Add([]byte("7f00-7f01 rw-s 00000000 00:31 7 /tmp/hsperfdata_a/../../etc/42 (deleted)\n/hsperfdata_/hsperfdata_x/42\n"))
	m.Fuzz(func(t *testing.T, maps []byte) {
		found, err := mappedPerfData(bytes.NewReader(maps), hostproc.Process{PID: 42})
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(found), maxMapped)
		for _, name := range found {
			require.True(t, strings.HasPrefix(name, "hsperfdata_") && strings.HasSuffix(name, "/42"), name)
			require.Equal(t, 1, strings.Count(name, "/"), name)
		}
	})
}
