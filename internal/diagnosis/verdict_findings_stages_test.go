package diagnosis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The cgroup's other processes count too: from 95 % on the next thread may be one
// too many.
func TestThreadsAtThePidsLimit(t *testing.T) {
	for _, tc := range []struct {
		threads int
		limit   *int
		want    bool
	}{
		{38, new(40), true},
		{40, new(40), true},
		{37, new(40), false},
		{240, nil, false},
	} {
		l := tomcat(200, 8192, 100).Listener
		l.Process.Threads, l.Process.PIDsLimit = new(tc.threads), tc.limit
		var codes []string
		(&judge{Evidence: Evidence{Now: l}}).threadsFinding(func(code string, s model.Severity, _, advice string) {
			codes = append(codes, code)
			require.Equal(t, model.SeverityWarning, s)
			require.Contains(t, advice, "pids-limit")
		})
		require.Equal(t, tc.want, len(codes) == 1, tc)
	}
}
