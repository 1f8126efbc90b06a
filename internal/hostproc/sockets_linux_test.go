package hostproc

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func TestSocketInodes(t *testing.T) {
	c := proctest.Start(t, "sockets", "300")
	var got []string
	require.NoError(t, realProc(t).SocketInodes(c.PID(), func(inode uint32) {
		got = append(got, strconv.FormatUint(uint64(inode), 10))
	}))
	require.Len(t, c.Lines, 300)
	require.Subset(t, got, c.Lines)
}

// TestSocketFiles: the descriptors above the first portion are not read twice.
func TestSocketFiles(t *testing.T) {
	const first = 100
	c := proctest.Start(t, "sockets", "300")
	fs := realProc(t)
	var got []string
	last := -1
	collect := func(fd int, inode uint32) bool {
		require.Greater(t, fd, last)
		last = fd
		at, ok := fs.SocketAt(c.PID(), fd)
		require.True(t, ok)
		require.Equal(t, inode, at)
		got = append(got, strconv.FormatUint(uint64(inode), 10))
		return true
	}
	next, err := fs.SocketFiles(c.PID(), 0, first, collect)
	require.NoError(t, err)
	require.Equal(t, first, next)
	require.Less(t, last, next)
	next, err = fs.SocketFiles(c.PID(), next, 0, collect)
	require.NoError(t, err)
	require.Zero(t, next)
	require.Subset(t, got, c.Lines)

	calls := 0
	_, err = fs.SocketFiles(c.PID(), 0, 0, func(int, uint32) bool { calls++; return false })
	require.NoError(t, err)
	require.Equal(t, 1, calls, "until fn returns false")
	_, ok := fs.SocketAt(c.PID(), 100_000)
	require.False(t, ok)
}

func TestSocketInode(t *testing.T) {
	for link, want := range map[string]uint32{"socket:[12345]": 12345, "socket:[4294967295]": 4294967295} {
		got, ok := SocketInode([]byte(link))
		require.True(t, ok, link)
		require.Equal(t, want, got, link)
	}
	for _, link := range []string{
		"", "socket:", "socket:[", "socket:[]", "socket:[12", "socket:[4294967296]", "socket:[-1]", "socket:[1x]",
		"pipe:[12]", "/socket:[12]", "socket:[99999999999999999999]",
	} {
		_, ok := SocketInode([]byte(link))
		require.False(t, ok, link)
	}
}

func FuzzSocketInode(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("socket:[12345]"))
	m.Fuzz(func(t *testing.T, link []byte) {
		inode, ok := SocketInode(link)
		if ok {
			n, err := strconv.ParseUint(string(link[len("socket:["):len(link)-1]), 10, 32)
			require.NoError(t, err)
			require.Equal(t, uint64(inode), n)
		}
	})
}
