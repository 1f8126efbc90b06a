package hostproc

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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

// TestSocketInodesAreBounded: a process of which not all is followed is not taken for one that has no more.
func TestSocketInodesAreBounded(t *testing.T) {
	c := proctest.Start(t, "sockets", "300")
	for most, bounded := range map[int]bool{100: true, 1000: false} {
		seen := 0
		read, err := realProc(t).SocketInodesOf(c.PID(), most, func(uint32) { seen++ })
		if bounded {
			require.ErrorIs(t, err, ErrManyDescriptors)
			require.Equal(t, most, read)
			require.LessOrEqual(t, seen, most)
			continue
		}
		require.NoError(t, err)
		require.GreaterOrEqual(t, read, 300)
		require.Equal(t, 300, seen)
	}
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

// Descriptors with gaps between them, from one free number to more than are listed at
// a time, are all found, whichever is the first.
func TestSocketFilesWithGaps(t *testing.T) {
	fs := realProc(t)
	var open []int
	for range 5 * gap {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		open = append(open, fd)
	}
	for _, high := range []int{open[0] + 2000, open[0] + 2001, open[0] + 2000 + 3*gap} {
		require.NoError(t, unix.Dup3(open[0], high, unix.O_CLOEXEC))
		open = append(open, high)
	}
	t.Cleanup(func() {
		for _, fd := range open {
			_ = unix.Close(fd)
		}
	})
	free := 0
	open = slices.DeleteFunc(open, func(fd int) bool {
		at := fd - open[0]
		if fd != open[0] && (at < 20 && at%2 == 1 || at > 2*gap && at < 4*gap) {
			free++
			return unix.Close(fd) == nil
		}
		return false
	})
	require.Greater(t, free, gap)
	for _, from := range []int{open[0], open[0] + 1, open[0] + 2*gap, open[0] + 1000, open[len(open)-1], open[len(open)-1] + 1} {
		var got, want []int
		next, err := fs.SocketFiles(os.Getpid(), from, 0, func(fd int, _ uint32) bool {
			got = append(got, fd)
			return true
		})
		require.NoError(t, err)
		require.Zero(t, next)
		for _, fd := range open {
			if fd >= from {
				want = append(want, fd)
			}
		}
		require.Equal(t, want, got, "from %d", from-open[0])
	}
	var got []int
	for next, rounds := open[0], 0; next > 0; rounds++ {
		require.Less(t, rounds, len(open))
		var err error
		next, err = fs.SocketFiles(os.Getpid(), next, 7, func(fd int, _ uint32) bool {
			got = append(got, fd)
			return true
		})
		require.NoError(t, err)
	}
	require.Equal(t, open, got, "by sevens")
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
