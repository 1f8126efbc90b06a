package owner

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

const captureStat = "18540 (java) S 18538 18538 9717 0 -1 1077936128 8511 0 0 0 41 9 0 0 20 0 19 0 204410 2667110400 10070 " +
	"18446744073709551615 93981402292224 93981402293001 140725433458720 0 0 0 0 2 16800972 0 0 0 17 1 0 0 0 0 0 " +
	"93981402304784 93981402305552 93981417988096 140725433466443 140725433466512 140725433466512 140725433470926 0\n"

func TestParseStat(t *testing.T) {
	st, ok := parseStat([]byte(captureStat))
	require.True(t, ok)
	require.Equal(t, stat{comm: "java", start: 204410, threads: 19}, st)
	st, ok = parseStat([]byte("7 (a) S (b) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 99 0"))
	require.True(t, ok)
	require.Equal(t, stat{comm: "a) S (b", start: 99, threads: 3}, st)
	st, ok = parseStat([]byte("7 (a) Z 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0"))
	require.True(t, ok)
	require.True(t, st.exited)
	for _, in := range []string{"", "7", "7 (java", "7 )java( S", "7 (java)", "7 (java) S 1 2 3", "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 x 0 99 0", "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 -9 0"} {
		_, ok := parseStat([]byte(in))
		require.False(t, ok, in)
	}
}

func TestEffectiveUID(t *testing.T) {
	uid, ok := effectiveUID([]byte("Name:\tjsvc\nPid:\t7\nUid:\t0\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\n"))
	require.True(t, ok)
	require.Equal(t, uint32(1001), uid)
	for _, in := range []string{"", "Uid:\t1\t2", "x\nUid:", "x\nUid:\t1\n", "x\nUid:\t1\t-2\n", "x\nUid:\t1\t4294967296\n"} {
		_, ok := effectiveUID([]byte(in))
		require.False(t, ok, in)
	}
}

func TestSocketInode(t *testing.T) {
	for link, want := range map[string]uint32{
		"socket:[12345]": 12345, "socket:[4294967295]": 4294967295,
		"": 0, "socket:[4294967296]": 0, "socket:[]": 0, "socket:[12": 0, "pipe:[12]": 0, "/x/socket:[1]": 0, "socket:[+1]": 0,
	} {
		require.Equal(t, want, socketInode([]byte(link)), link)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(captureStat))
	f.Fuzz(func(t *testing.T, data []byte) {
		st, ok := parseStat(data)
		require.False(t, !ok && st != stat{})
		_, _ = effectiveUID(data)
	})
}

func FuzzSocketInode(f *testing.F) {
	f.Add([]byte("socket:[12345]"))
	f.Fuzz(func(t *testing.T, link []byte) {
		if n := socketInode(link); n != 0 {
			require.Contains(t, string(link), strconv.FormatUint(uint64(n), 10))
		}
	})
}
