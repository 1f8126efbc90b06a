package hostproc

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSocketInodes(t *testing.T) {
	c := startChild(t, "sockets", "300")
	var got []string
	require.NoError(t, realProc(t).SocketInodes(c.pid(), func(inode uint32) {
		got = append(got, strconv.FormatUint(uint64(inode), 10))
	}))
	require.Len(t, c.lines, 300)
	require.Subset(t, got, c.lines)
}

func TestSocketInode(t *testing.T) {
	for link, want := range map[string]uint32{"socket:[12345]": 12345, "socket:[4294967295]": 4294967295} {
		got, ok := socketInode([]byte(link))
		require.True(t, ok, link)
		require.Equal(t, want, got, link)
	}
	for _, link := range []string{
		"", "socket:", "socket:[", "socket:[]", "socket:[12", "socket:[4294967296]", "socket:[-1]", "socket:[1x]",
		"pipe:[12]", "/socket:[12]", "socket:[99999999999999999999]",
	} {
		_, ok := socketInode([]byte(link))
		require.False(t, ok, link)
	}
}

func FuzzSocketInode(f *testing.F) {
	f.Add([]byte("socket:[12345]"))
	f.Fuzz(func(t *testing.T, link []byte) {
		inode, ok := socketInode(link)
		if ok {
			n, err := strconv.ParseUint(string(link[len("socket:["):len(link)-1]), 10, 32)
			require.NoError(t, err)
			require.Equal(t, uint64(inode), n)
		}
	})
}

func FuzzEachDirent(f *testing.F) {
	entry := append(make([]byte, 16), 24, 0, 10, '4', '2', 0, 0, 0)
	f.Add(entry)
	f.Add(append(append([]byte{}, entry...), entry...))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		_ = eachDirent(b, func(int) error { n++; return nil })
		require.LessOrEqual(t, n, len(b)/direntName)
	})
}
