package findings

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The cgroup's other processes count too: from 95 % on the next thread may be one
// too many; what was refused is proof, whatever the number is now.
func TestThreadsAtThePidsLimit(t *testing.T) {
	for _, tc := range []struct {
		threads int
		limit   *int
		refused *uint64
		want    bool
	}{
		{38, new(40), nil, true},
		{40, new(40), new(uint64(0)), true},
		{37, new(40), nil, false},
		{37, new(40), new(uint64(0)), false},
		{21, new(40), new(uint64(1)), true}, // the thread that was refused ended others
		{21, nil, new(uint64(2)), true},
		{240, nil, nil, false},
	} {
		l := &model.Listener{Process: &model.Process{}}
		l.Process.Threads, l.Process.PIDsLimit, l.Process.PIDsRefused = new(tc.threads), tc.limit, tc.refused
		var codes []string
		s := symptoms.Of(symptoms.Input{Now: l}, reading.DefaultThresholds())
		threadsFinding(s, func(code string, level model.Severity, _, advice string) {
			codes = append(codes, code)
			require.Equal(t, model.SeverityWarning, level)
			require.Contains(t, advice, "pids-limit")
		})
		require.Equal(t, tc.want, len(codes) == 1, tc)
	}
}
