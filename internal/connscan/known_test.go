package connscan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Where a walk is cheap there is nothing to gain, nor where too many would have to
// be remembered.
func TestKnownServes(t *testing.T) {
	at := time.Unix(1000, 0)
	socket := sockdiag.Socket{State: sockdiag.Established, Cookie: 1}
	counted := namespace.Turnover{Opened: 9, Known: true}
	of := func(n int) (k known) {
		k.begin()
		for range n {
			k.add(&socket, true)
		}
		k.walked(at, counted, 10*time.Millisecond, false)
		return k
	}
	for n, serves := range map[int]bool{0: true, 2499: true, 2501: false, mostKnown + 1: false} {
		k := of(n)
		require.Equal(t, serves, k.serves(at, counted, false, false), n)
		require.False(t, k.serves(at, counted, true, false), "outgoing ones were not taken along")
	}
	costly := of(1000)
	costly.each = 6 * time.Microsecond
	require.False(t, costly.serves(at, counted, false, false), "requests have turned out to be expensive")
	for range 4 { // of a machine that was busy at that time
		costly.walked(at, counted, 10*time.Millisecond, false)
	}
	require.True(t, costly.serves(at, counted, false, false), "that they were expensive once is forgotten walk by walk")
	million := of(1000)
	million.cost = 600 * time.Millisecond
	require.True(t, million.serves(at.Add(2*walkRest-1), counted, false, false), "a walk that takes half a second is made less often")
	require.False(t, million.serves(at.Add(2*walkRest), counted, false, false))
	require.True(t, million.serves(at.Add(settledRest-1), counted, false, true), "with nothing in TIME_WAIT a walk would show nothing else")
	require.False(t, million.serves(at.Add(settledRest), counted, false, true))
	small := known{}
	small.walked(at, counted, cheap-1, true)
	require.False(t, small.serves(at, counted, false, false), "there is nothing to gain")
	blank := sockdiag.Socket{State: sockdiag.Established}
	k := known{}
	k.begin()
	k.add(&blank, true)
	k.walked(at, counted, time.Second, true)
	require.False(t, k.serves(at, counted, false, false), "without a cookie the listener would answer")
}

// The walk before a port was watched has passed over its connections: though no other one
// has come since, the next reading is a walk.
func TestKnownAreOfTheirListeners(t *testing.T) {
	at, counted := time.Unix(1000, 0), namespace.Turnover{Opened: 9, Known: true}
	k, of := known{}, []model.ListenerID{{NetNS: 1}}
	k.setListeners(of)
	k.begin()
	k.walked(at, counted, 10*time.Millisecond, false)
	k.setListeners(of)
	require.True(t, k.serves(at, counted, false, false))
	k.setListeners(append(of, model.ListenerID{NetNS: 1, Device: "eth0"}))
	require.False(t, k.serves(at, counted, false, false))
}

// Where a walk with the outgoing connections is expensive they are read less often.
func TestOutgoingRest(t *testing.T) {
	for cost, rest := range map[time.Duration]time.Duration{
		time.Millisecond: facts.Apart, 100 * time.Millisecond: 5 * time.Second, time.Second: restful,
	} {
		require.Equal(t, rest, lastScan{cost: cost}.rest(), cost)
	}
}

// More than are worth asking for have no memory, until a walk has found fewer.
func TestFew(t *testing.T) {
	const most = 3
	var f connectionSet
	walk := func(n int) {
		f.begin(most)
		for i := range n {
			f.add(&sockdiag.Socket{State: sockdiag.Established, Cookie: uint64(1 + i)}, most)
		}
	}
	walk(most)
	require.Len(t, f.ids, most)
	require.False(t, f.beyond)
	walk(most + 1)
	require.Nil(t, f.ids)
	require.True(t, f.beyond)
	walk(most + 1)
	require.Zero(t, cap(f.ids), "not begun again")
	walk(most)
	require.True(t, f.beyond, "none is remembered of the walk that has found so")
	walk(most)
	require.Len(t, f.ids, most)
	require.False(t, f.beyond)
	f.add(&sockdiag.Socket{State: sockdiag.Established}, most+1)
	require.True(t, f.beyond, "without a cookie it cannot be asked for")
}

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
