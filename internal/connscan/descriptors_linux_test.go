package connscan

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// descriptorsOf are processes of a /proc, each with sockets of these inodes.
func descriptorsOf(t *testing.T, name string, of map[int][]uint32) (dir string) {
	files := make(map[string]string)
	for pid := range of {
		files[fmt.Sprint(pid, "/stat")] = fmt.Sprintf("%d (%s) S 1 1 1 0 -1 4194560 1 0 5 0 100 50 0 0 20 0 1 0 100 1000 100 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 1 1 1 1 1 1 1 0\n", pid, name)
		files[fmt.Sprint(pid, "/status")] = fmt.Sprintf("Name:\t%s\nUid:\t0\t0\t0\t0\nFDSize:\t64\n", name)
	}
	dir = proctest.Fake(t, files)
	for pid, inodes := range of {
		fd := filepath.Join(dir, fmt.Sprint(pid), "fd")
		require.NoError(t, os.MkdirAll(fd, 0o755))
		for i, inode := range inodes {
			require.NoError(t, os.Symlink(fmt.Sprintf("socket:[%d]", inode), filepath.Join(fd, fmt.Sprint(i))))
		}
		ns := filepath.Join(dir, fmt.Sprint(pid), "ns")
		require.NoError(t, os.MkdirAll(ns, 0o755))
		require.NoError(t, os.Symlink("net:[1]", filepath.Join(ns, "net")))
	}
	return dir
}

func watchlistOf(comm string, pids ...int) *facts.Watchlist {
	r := &facts.Watchlist{}
	for _, pid := range pids {
		r.Watched = append(r.Watched, facts.Watched{Listening: &facts.Listening{
			ID:    model.ListenerID{NetNS: 1, Address: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(pid))},
			Owner: &owner.Process{PID: pid, StartTime: 100, Comm: comm}, Members: []sockdiag.Listener{{}},
		}})
	}
	r.Index()
	return r
}

func numbers(from uint32, n int) (out []uint32) {
	for i := range n {
		out = append(out, from+uint32(i))
	}
	return out
}

// Servers of one network namespace have more descriptors together than one reading follows, and one of them has more than that by
// itself: the others are read in turns, each as long as it takes, and of the one none are known, which is said.
func TestDescriptorsAreReadInTurns(t *testing.T) {
	const each, most = 40, 100
	of := map[int][]uint32{1005: numbers(9000, most+1)}
	var pids []int
	for i := range 10 {
		pid := 1000 + i
		if pids = append(pids, pid); of[pid] == nil {
			of[pid] = numbers(uint32(100*i), each)
		}
	}
	r := watchlistOf("server", pids...)
	at := time.Now()
	s := New(hostfs.At(t, descriptorsOf(t, "server", of)), facts.NewStore(), func() time.Time { return at })
	s.mostDescriptors = most
	read := make(map[int]bool)
	for turn := 1; len(read) < len(pids); turn++ {
		require.LessOrEqual(t, turn, len(pids))
		held := s.holding(r, 1, at)
		require.False(t, held.fresh)
		require.False(t, held.complete(), "of who was not read yet, and of who cannot be, the user's connections count")
		now := 0
		for _, pid := range pids {
			d := s.peers.process(hostproc.ProcessKey{PID: pid, StartTime: 100}).descriptors
			switch {
			case d.at.IsZero():
				require.ErrorIs(t, d.err, errOthersDescriptors)
				continue
			case pid == 1005:
				require.ErrorIs(t, d.err, hostproc.ErrManyDescriptors)
				require.Empty(t, d.inodes)
			default:
				require.NoError(t, d.err)
				require.Equal(t, of[pid], d.inodes)
			}
			if !read[pid] {
				read[pid], now = true, now+1
			}
		}
		require.LessOrEqual(t, now, most/each)
		at = at.Add(time.Millisecond)
	}
	require.True(t, slices.Contains(s.holding(r, 1, at).inodes, 0))
}

// A user has processes of the server's name with many descriptors: the one that holds a connection of a watched port is found all the
// same, a search later at most for each few of these, and no search follows more than its bound.
func TestStrangersAreSearchedInTurns(t *testing.T) {
	const most, hogs, inode = 100, 20, 7
	of := map[int][]uint32{1000: {1}, 3000: append(numbers(80_000, 10), inode)}
	for i := range hogs {
		of[2000+i] = numbers(uint32(1000*(1+i)), 10*most)
	}
	of[2000+hogs-1] = numbers(90_000, most/searchedPart-1) // which leave the next one a rest
	proc, r := hostfs.At(t, descriptorsOf(t, "server", of)), watchlistOf("server", 1000)
	s := strangers{of: make(map[uint32]holder)}
	for search := 1; !s.search(proc, r, 1, time.Now(), []uint32{inode}, most); search++ {
		require.LessOrEqual(t, search, 1+hogs/searchedPart)
	}
	require.Equal(t, holder{3000, "server"}, s.of[inode])
}
