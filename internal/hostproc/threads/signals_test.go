package threads

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// As JDK 17 shows its VM Thread, and another thread, which blocks SIGQUIT (3).
func TestThreadSignals(t *testing.T) {
	vm := "Name:\tVM Thread\nUmask:\t0022\nState:\tS (sleeping)\nSigQ:\t2/96343\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000002\nSigCgt:\t0000000101005ccd\n"
	got, ok := parseThreadSignals([]byte(vm))
	require.True(t, ok)
	require.Equal(t, Signals{Name: "VM Thread", State: 'S', Caught: 0x101005ccd}, got)
	require.True(t, got.Takes(3))
	require.False(t, got.Takes(2), "ignored")
	require.False(t, got.Stopped())
	other, ok := parseThreadSignals([]byte(strings.NewReplacer("SigBlk:\t0000000000000000", "SigBlk:\t0000000000000004", "S (sleeping)", "T (stopped)").Replace(vm)))
	require.True(t, ok)
	require.False(t, other.Takes(3), "blocked")
	require.True(t, other.Stopped())
	for _, missing := range []string{"SigCgt", "SigBlk", "State"} {
		_, ok = parseThreadSignals([]byte(strings.Replace(vm, missing, "Other", 1)))
		require.False(t, ok, missing)
	}
	_, ok = parseThreadSignals([]byte(strings.Replace(vm, "0000000101005ccd", "no mask", 1)))
	require.False(t, ok)
}
