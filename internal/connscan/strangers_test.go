package connscan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A connection that no owner holds is suspected once it is there in two readings of the
// descriptors: one of them alone may have been accepted between these and the walk. The
// first reading has no other to compare with.
func TestUnheld(t *testing.T) {
	s := strangers{of: map[uint32]holder{7: {pid: 1}}}
	reading := func(held []uint32, accepted ...uint32) *reading {
		return &reading{owned: &ownedSockets{inodes: held, fresh: true}, accepted: accepted}
	}
	require.Equal(t, []uint32{3}, s.unheld(reading([]uint32{1, 2}, 1, 2, 3, 7)), "the first")
	s.searched = time.Unix(1, 0)
	require.Equal(t, []uint32{3}, s.unheld(reading([]uint32{1, 2}, 1, 2, 3, 4)))
	require.Empty(t, s.unheld(reading([]uint32{1, 2, 3, 4}, 1, 2, 3, 4)), "accepted since the descriptors were read")
	s.retain(reading(nil, 1, 2))
	require.Empty(t, s.of, "closed")
}

func TestLargest(t *testing.T) {
	require.Nil(t, largest(nil))
	require.Equal(t, 2, largest(map[int]*model.OtherProcess{1: {PID: 1, Connections: 3}, 2: {PID: 2, Connections: 9}}).PID)
}
