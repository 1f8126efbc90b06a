package hostproc

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

const capturedStat = "18540 (java) S 18538 18538 9717 0 -1 1077936128 8511 0 0 0 41 9 0 0 20 0 19 0 204410 2667110400 10070 " +
	"18446744073709551615 93981402292224 93981402293001 140725433458720 0 0 0 0 2 16800972 0 0 0 17 1 0 0 0 0 0 " +
	"93981402304784 93981402305552 93981417988096 140725433466443 140725433466512 140725433466512 140725433470926 0\n"

func TestParseStat(t *testing.T) {
	st, err := parseStat([]byte(capturedStat))
	require.NoError(t, err)
	require.Equal(t, Stat{Comm: "java", StartTime: 204410, Threads: 19}, st)
	st, err = parseStat([]byte("7 (a) S (b) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 99 0"))
	require.NoError(t, err)
	require.Equal(t, Stat{Comm: "a) S (b", StartTime: 99, Threads: 3}, st)
	st, err = parseStat([]byte("7 (a) Z 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0"))
	require.NoError(t, err)
	require.True(t, st.Exited)
	for _, in := range []string{"", "7", "7 (java", "7 )java( S", "7 (java)", "7 (java) S 1 2 3", "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 x 0 99 0", "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 -9 0"} {
		_, err := parseStat([]byte(in))
		require.ErrorIs(t, err, ErrMalformed, in)
	}
}

// TestEffectiveUID: root owns the folder of a process that is not dumpable.
func TestEffectiveUID(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: the test's files would be owned by another user")
	}
	of := func(status string) (uint32, error) {
		fs, err := NewFS(proctest.Fake(t, map[string]string{"7/status": status}))
		require.NoError(t, err)
		return fs.EffectiveUID(7)
	}
	for status, want := range map[string]uint32{
		"Name:\tjsvc\nPid:\t7\nUid:\t0\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\n": 1001,
		"Name:\tx\nUid:\t0\t4294967295\t0\t0":                                 4294967295,
	} {
		uid, err := of(status)
		require.NoError(t, err, status)
		require.Equal(t, want, uid)
	}
	for _, status := range []string{"", "Uid:\t1\t2", "x\nUid:", "x\nUid:\t1\n", "x\nUid:\t1\t-2\n", "x\nUid:\t1\t4294967296\n"} {
		_, err := of(status)
		require.ErrorIs(t, err, ErrMalformed, status)
	}
}

func FuzzParseStat(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte(capturedStat))
	m.Fuzz(func(t *testing.T, data []byte) {
		st, err := parseStat(data)
		require.False(t, err != nil && st != Stat{})
	})
}
