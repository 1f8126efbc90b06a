package openfiles

import (
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
	read, err := SubsetOfSockets(fs, c.PID(), size, func(inode uint32) {
		require.True(t, all[inode])
		require.False(t, seen[inode], "picked twice")
		seen[inode] = true
	})
	require.NoError(t, err)
	// 3,000 of 4,096 places are taken: a part of seven and a bit has a descriptor
	// picked with a chance of 3 in 4, or of none beyond the last.
	require.InDelta(t, size, read, size/5)
	open, err := Count(fs, c.PID())
	require.NoError(t, err)
	require.InDelta(t, len(all), float64(open)*float64(len(seen))/float64(read), sockets/20)
}

// TestSampleOfFewReadsAll: nothing is left to chance.
func TestSampleOfFewReadsAll(t *testing.T) {
	c := proctest.Start(t, "sockets", "50")
	fs := hostfs.Real(t)
	var all, sample []uint32
	require.NoError(t, fs.SocketInodes(c.PID(), func(inode uint32) { all = append(all, inode) }))
	open, err := Count(fs, c.PID())
	require.NoError(t, err)
	read, err := SubsetOfSockets(fs, c.PID(), open, func(inode uint32) { sample = append(sample, inode) })
	require.NoError(t, err)
	require.Equal(t, open, read)
	require.Equal(t, all, sample)
}

func TestSampleOfNobody(t *testing.T) {
	_, err := SubsetOfSockets(hostfs.Real(t), 1<<22+1, 10, func(uint32) {})
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}
