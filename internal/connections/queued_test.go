package connections

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// waits is a reading of an accept queue: how long each of those in it has waited, by cookie.
func waits(ages map[uint64]time.Duration, took time.Duration) *Found {
	f := &Found{}
	for cookie, age := range ages {
		f.Add(&sockdiag.Socket{State: sockdiag.Established, Cookie: cookie, HasInfo: true, Info: sockdiag.TCPInfo{LastDataSent: age}})
	}
	f.Finish(time.Unix(9, 0), took, false)
	return f
}

func TestStands(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	type ages = map[uint64]time.Duration
	for name, c := range map[string]struct {
		was, now ages
		took     time.Duration
		several  bool
		stands   bool
	}{
		"all are there, and more":               {was: ages{1: s, 2: 900 * ms}, now: ages{1: 2 * s, 2: 1900 * ms, 3: 0}, stands: true},
		"the second has reset its connection":   {was: ages{1: s, 2: 900 * ms}, now: ages{1: 2 * s}, stands: true},
		"the first was accepted":                {was: ages{1: s, 2: 900 * ms}, now: ages{2: 1900 * ms, 3: 0}},
		"of a burst one was accepted":           {was: ages{1: s, 2: s, 3: s, 4: s}, now: ages{1: 2 * s, 3: 2 * s, 4: 2 * s}},
		"which of them was first is not known":  {was: ages{1: s, 2: s - 100*ms}, now: ages{1: 2 * s}, took: 100 * ms},
		"all were accepted":                     {was: ages{1: s}, now: ages{}},
		"of two sockets' queues one is emptied": {was: ages{1: s, 2: 500 * ms}, now: ages{1: 2 * s}, several: true},
	} {
		t.Run(name, func(t *testing.T) {
			stands, known := waits(c.now, c.took).Stands(waits(c.was, c.took), c.several)
			require.True(t, known)
			require.Equal(t, c.stands, stands)
		})
	}

	_, known := waits(ages{1: s}, 0).Stands(waits(ages{}, 0), false)
	require.False(t, known, "nobody waited")
	many := make(ages)
	for i := range uint64(mostQueued + 1) {
		many[i+1] = s
	}
	_, known = waits(many, 0).Stands(waits(ages{1: s}, 0), false)
	require.False(t, known, "more than are remembered")
}

// Of those in the accept queue who have closed: with a request sent, or without, as a check of the port does, which
// waits for nothing.
func TestQueuedLeft(t *testing.T) {
	f := &Found{}
	waited := func(d time.Duration) sockdiag.TCPInfo { return sockdiag.TCPInfo{LastDataSent: d} }
	gone := waited(2 * time.Second)
	gone.LastAckRecv = 1500 * time.Millisecond // its FIN
	for _, s := range []sockdiag.Socket{
		{State: sockdiag.CloseWait, RecvQ: 81, HasInfo: true, Info: gone},
		{State: sockdiag.CloseWait, RecvQ: 1, HasInfo: true, Info: waited(9 * time.Second)},
		{State: sockdiag.Established, RecvQ: 80, HasInfo: true, Info: waited(time.Second)},
		{State: sockdiag.CloseWait, RecvQ: 81, Inode: 1},
	} {
		f.Add(&s)
	}
	require.Equal(t, 3, f.Queued)
	require.Equal(t, []int{1, 1}, []int{f.QueuedLeft, f.Probes})
	require.Equal(t, []time.Duration{9 * time.Second, 2 * time.Second}, []time.Duration{f.OldestWait, *f.OldestAsks})
	require.Equal(t, 500*time.Millisecond, f.Patience)
}
