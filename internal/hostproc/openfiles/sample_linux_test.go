package openfiles

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// TestSampleSocketInodes: of 3,000 sockets and a handful of files a sample of 400
// finds only sockets of the process, each once, and says how many they are.
func TestSampleSocketInodes(t *testing.T) {
	const sockets, size = 3000, 400
	c := proctest.Start(t, "sockets", "3000")
	fs := hostfs.Real(t)
	all := map[uint32]bool{}
	require.NoError(t, fs.SocketInodes(c.PID(), func(inode uint32) { all[inode] = true }))
	require.GreaterOrEqual(t, len(all), sockets)

	seen := map[uint32]bool{}
	each, err := SubsetOfSockets(fs, c.PID(), size, func(inode uint32) {
		require.True(t, all[inode])
		require.False(t, seen[inode], "picked twice")
		seen[inode] = true
	})
	require.NoError(t, err)
	// 3,000 of 4,096 places are taken: a part of seven and a bit has a descriptor
	// picked with a chance of 3 in 4, or of none beyond the last.
	require.InDelta(t, size, len(seen), size/5)
	require.InDelta(t, len(all), each*float64(len(seen)), sockets/20)
}

// A table of descriptors that was grown once makes nobody read more than eight times as many as are wanted; before Linux 6.2 they are
// not counted for it.
func TestSampleOfALongTable(t *testing.T) {
	const size, open, slots = 20, 1000, 1 << 20
	dir := proctest.Fake(t, map[string]string{"7/status": "Name:\tx\nFDSize:\t1048576\n"})
	folder := filepath.Join(dir, "7", "fd")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	for fd := range open {
		require.NoError(t, os.Symlink(fmt.Sprintf("socket:[%d]", 1+fd), filepath.Join(folder, strconv.Itoa(fd))))
	}
	read := 0
	each, err := SubsetOfSockets(hostfs.At(t, dir).Listing(), 7, size, func(uint32) { read++ })
	require.NoError(t, err)
	require.LessOrEqual(t, read, sparse*size)
	require.EqualValues(t, slots/(sparse*size), math.Floor(each))
}

// TestSampleOfFewReadsAll: nothing is left to chance.
func TestSampleOfFewReadsAll(t *testing.T) {
	c := proctest.Start(t, "sockets", "50")
	fs := hostfs.Real(t)
	var all, sample []uint32
	require.NoError(t, fs.SocketInodes(c.PID(), func(inode uint32) { all = append(all, inode) }))
	open, err := Count(fs, c.PID())
	require.NoError(t, err)
	each, err := SubsetOfSockets(fs, c.PID(), open, func(inode uint32) { sample = append(sample, inode) })
	require.NoError(t, err)
	require.EqualValues(t, 1, each)
	require.Equal(t, all, sample)
}

func TestSampleOfNobody(t *testing.T) {
	_, err := SubsetOfSockets(hostfs.Real(t), 1<<22+1, 10, func(uint32) {})
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}
