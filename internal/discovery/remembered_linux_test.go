package discovery

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
)

// However many processes one owner starts, what is remembered is bounded, and another owner's stays.
func TestProcessesByChurn(t *testing.T) {
	proc := hostfs.Real(t)
	d := NewDiscoverer(proc)
	const beyond = 5_000_000 // the kernel's largest pid is 4,194,304: there are no such processes
	remember := func(pid int, owner string) {
		d.entry(pid, 1)
		d.entries[pid].Request = examine.Request{PID: pid, StartTime: 1, Owner: owner}
	}
	remember(beyond, "calm")
	for pid := range 5 * maxRemembered {
		remember(beyond+1+pid, "greedy")
		require.LessOrEqual(t, len(d.entries), maxRemembered)
	}
	require.Contains(t, d.entries, beyond)
	require.Equal(t, "calm", d.entries[beyond].Owner)
}
