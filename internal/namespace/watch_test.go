package namespace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

func TestSecondsFull(t *testing.T) {
	const interval = 10 * time.Millisecond
	type sample struct {
		after  time.Duration
		length uint32
	}
	tests := map[string]struct {
		samples []sample
		want    time.Duration
	}{
		"never full":                {[]sample{{0, 5}, {interval, 5}}, 0},
		"full at one end only":      {[]sample{{0, 6}, {interval, 5}, {interval, 6}}, 0},
		"full at both ends":         {[]sample{{0, 6}, {interval, 6}, {interval, 6}}, 2 * interval},
		"a late tick counts whole":  {[]sample{{0, 6}, {3 * interval, 6}}, 3 * interval},
		"a stall counts five ticks": {[]sample{{0, 6}, {5 * time.Second, 6}}, 5 * interval},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			w := watch{account: losses.NewAccount(model.ListenerID{}, time.Minute), members: make([]member, 1)}
			for _, s := range tt.samples {
				now = now.Add(s.after)
				w.members[0].hear(&sockdiag.Listener{RecvQ: s.length, SendQ: 5})
				w.take(now)
				w.sampled(now, 5*interval)
			}
			require.Equal(t, tt.want, time.Duration(w.account.Totals().FullSeconds*float64(time.Second)))
			require.EqualValues(t, len(tt.samples), w.account.Totals().Fill.Count)
		})
	}
}

func TestFullestMemberCounts(t *testing.T) {
	w := watch{account: losses.NewAccount(model.ListenerID{}, time.Minute), members: make([]member, 3)}
	for i, q := range [][2]uint32{{10, 100}, {5, 5}, {90, 100}} {
		w.members[i].hear(&sockdiag.Listener{RecvQ: q[0], SendQ: q[1]})
		w.members[i].take()
	}
	w.fold()
	require.EqualValues(t, 90, w.queue.Length)
	require.EqualValues(t, 100, w.queue.Limit)
}

func TestQueueOfClosedListenerIsReset(t *testing.T) {
	a := losses.NewAccount(model.ListenerID{}, time.Minute)
	w := watch{account: a, members: []member{{length: 4}, {length: 2}}}
	now := time.Unix(1_700_000_000, 0)
	w.close(now)
	w.close(now.Add(time.Second)) // seen again by the scan
	require.EqualValues(t, 6, a.Totals().QueueResets)
	require.Equal(t, losses.Departure{Queued: 6, At: now}, a.Closed())
}

// A scan lists its listeners before the walk; one that closes during the walk
// must not be counted again when the scan hands its listeners on.
func TestListenerThatClosesDuringTheScan(t *testing.T) {
	a := losses.NewAccount(model.ListenerID{}, time.Minute)
	listed := func() []watch { return []watch{{account: a, members: []member{{inode: 7, length: 4}}}} }
	now := time.Unix(1_700_000_000, 0)
	var ws watches
	none := func(uint32) bool { return false }
	ws.replace(now, listed(), none, false)
	ws.list[0].close(now)
	ws.replace(now, listed(), none, false)
	require.True(t, ws.list[0].closed())
	ws.list[0].close(now)
	require.EqualValues(t, 4, a.Totals().QueueResets)
}

// A listener answers once more while it closes, with both queues 0.
func TestClosingListenersReplyIsNotBelieved(t *testing.T) {
	full, torn := reply{recvQ: 6, sendQ: 5}, reply{}
	w := watch{account: losses.NewAccount(model.ListenerID{}, time.Minute), members: make([]member, 1)}
	m := &w.members[0]
	m.observe(full)
	m.observe(torn)
	require.EqualValues(t, 6, m.length)
	require.EqualValues(t, 5, m.limit)
	w.close(time.Unix(1_700_000_000, 0))
	require.EqualValues(t, 6, w.account.Totals().QueueResets)

	m.observe(full)
	m.observe(torn)
	m.observe(torn)
	require.Zero(t, m.limit, "twice is true: listen(0) was called")
	m.observe(torn)
	require.Zero(t, m.limit)
}

// The dump pays when many of the namespace's listeners are watched, not when a
// few of very many are.
func TestExactRequestsOrDump(t *testing.T) {
	tests := []struct {
		watched, there int
		want           bool
	}{{1, 1, true}, {8, 8, true}, {16, 16, true}, {17, 17, false}, {17, 500, true}, {113, 500, true}, {114, 500, false}, {500, 500, false}}
	for _, tt := range tests {
		ws := watches{list: make([]watch, tt.watched)}
		for i := range ws.list {
			ws.list[i].members = make([]member, 1)
		}
		require.Equal(t, tt.want, ws.exact(tt.there, time.Time{}), "%d of %d", tt.watched, tt.there)
	}
	group := watches{list: []watch{{members: make([]member, 2)}}}
	require.False(t, group.exact(0, time.Time{}), "SO_REUSEPORT: an exact request finds one by hash")
}

// TestTaken: what a queue of one socket becomes shorter by was accepted; what
// comes in between is not seen, so it is a lower bound. Of a group another member
// may be the fullest.
func TestTaken(t *testing.T) {
	one := watch{account: losses.NewAccount(model.ListenerID{}, time.Minute), members: make([]member, 1)}
	at := time.Unix(1_700_000_000, 0)
	for _, length := range []uint32{5, 3, 3, 7, 0} {
		at = at.Add(10 * time.Millisecond)
		one.members[0].length, one.members[0].limit, one.members[0].seen = length, 10, true
		one.sampled(at, time.Second)
	}
	require.EqualValues(t, 9, one.taken)
	group := watch{account: losses.NewAccount(model.ListenerID{}, time.Minute), members: make([]member, 2)}
	for _, length := range []uint32{5, 1} {
		at = at.Add(10 * time.Millisecond)
		group.members[0].length, group.members[0].limit, group.members[0].seen = length, 10, true
		group.sampled(at, time.Second)
	}
	require.Zero(t, group.taken)
}

// That somebody was accepted is what a member's queue shows that became shorter, whichever is the fullest; that nobody was, what
// stays as it is from sample to sample.
func TestWhenSomebodyWasAccepted(t *testing.T) {
	const late = 100 * time.Millisecond
	begin := time.Unix(1_700_000_000, 0)
	after := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	w := watch{account: losses.NewAccount(model.ListenerID{}, time.Minute), members: make([]member, 2)}
	for _, s := range []struct {
		ms          int
		lengths     [2]uint32
		limit       uint32
		fell, still time.Time
	}{
		{0, [2]uint32{0, 0}, 10, time.Time{}, time.Time{}},
		{10, [2]uint32{3, 1}, 10, time.Time{}, after(10)},
		{20, [2]uint32{5, 1}, 10, time.Time{}, after(10)},
		{30, [2]uint32{5, 0}, 10, after(30), after(30)},
		{40, [2]uint32{0, 0}, 10, after(40), time.Time{}},
		{50, [2]uint32{2, 0}, 10, after(40), after(50)},
		{250, [2]uint32{2, 0}, 10, after(40), after(250)}, // who was accepted meanwhile, and who came, is not known
		{260, [2]uint32{0, 0}, 0, after(40), after(250)},  // they close
		{270, [2]uint32{0, 0}, 0, after(40), time.Time{}},
	} {
		for i := range w.members {
			w.members[i].hear(&sockdiag.Listener{RecvQ: s.lengths[i], SendQ: s.limit})
		}
		w.take(after(s.ms))
		w.sampled(after(s.ms), late)
		require.Equal(t, s.fell, w.fell, s.ms)
		require.Equal(t, s.still, w.still, s.ms)
	}
}

// A new list may show it, too: but not of a socket that has closed.
func TestAcceptedBeforeANewList(t *testing.T) {
	for name, tt := range map[string]struct {
		listed member
		closed bool
		want   bool
	}{
		"one was accepted":     {member{inode: 7, length: 3}, false, true},
		"nobody was":           {member{inode: 7, length: 4}, false, false},
		"another socket":       {member{inode: 8, length: 0}, false, false},
		"it has closed before": {member{inode: 7, length: 0}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := losses.NewAccount(model.ListenerID{}, time.Minute)
			now := time.Unix(1_700_000_000, 0)
			var ws watches
			none := func(uint32) bool { return false }
			ws.replace(now, []watch{{account: a, members: []member{{inode: 7, length: 4, closed: tt.closed}}}}, none, false)
			ws.replace(now, []watch{{account: a, members: []member{tt.listed}}}, none, false)
			w := &ws.list[0]
			w.sampled(now.Add(time.Second), time.Minute)
			require.Equal(t, tt.want, !w.fell.IsZero())
		})
	}
}
