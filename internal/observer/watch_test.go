package observer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
			w := watch{account: newAccount(model.ListenerID{}, time.Minute), members: make([]member, 1)}
			for _, s := range tt.samples {
				now = now.Add(s.after)
				w.members[0].observe(&sockdiag.Listener{RecvQ: s.length, SendQ: 5})
				w.sampled(now, maxGap*interval)
			}
			require.Equal(t, tt.want, w.account.fullTime)
			require.EqualValues(t, len(tt.samples), w.account.fill.Count)
		})
	}
}

func TestFullestMemberCounts(t *testing.T) {
	w := watch{account: newAccount(model.ListenerID{}, time.Minute), members: make([]member, 3)}
	for i, q := range [][2]uint32{{10, 100}, {5, 5}, {90, 100}} {
		w.members[i].observe(&sockdiag.Listener{RecvQ: q[0], SendQ: q[1]})
	}
	w.fold()
	require.EqualValues(t, 90, w.length)
	require.EqualValues(t, 100, w.limit)
}

func TestQueueOfClosedListenerIsReset(t *testing.T) {
	a := newAccount(model.ListenerID{}, time.Minute)
	w := watch{account: a, members: []member{{length: 4}, {length: 2}}}
	now := time.Unix(1_700_000_000, 0)
	w.vanish(now)
	w.vanish(now.Add(time.Second)) // seen again by the scan
	require.EqualValues(t, 6, a.ledger.queueResets)
	require.Equal(t, departure{queued: 6, at: now}, a.closed)
}

// A scan lists its listeners before the walk; one that closes during the walk
// must not be counted again when the scan hands its listeners on.
func TestListenerThatClosesDuringTheScan(t *testing.T) {
	a := newAccount(model.ListenerID{}, time.Minute)
	listed := func() []watch { return []watch{{account: a, members: []member{{inode: 7, length: 4}}}} }
	now := time.Unix(1_700_000_000, 0)
	sp := &space{}
	sp.replace(now, listed())
	sp.watches[0].vanish(now)
	sp.replace(now, listed())
	require.True(t, sp.watches[0].gone())
	sp.watches[0].vanish(now)
	require.EqualValues(t, 4, a.ledger.queueResets)
}

func TestMissedTicks(t *testing.T) {
	s := &Sampler{opt: Options{SampleInterval: 10 * time.Millisecond}}
	now := time.Unix(1_700_000_000, 0)
	for _, step := range []time.Duration{0, 10, 12, 8, 31, 10, 1000} {
		now = now.Add(step * time.Millisecond)
		s.countMissed(now)
	}
	require.EqualValues(t, 2+99, s.self.MissedTicks)
}

// A listener answers once more while it closes, with both queues 0.
func TestClosingListenersReplyIsNotBelieved(t *testing.T) {
	full, torn := &sockdiag.Listener{RecvQ: 6, SendQ: 5}, &sockdiag.Listener{}
	w := watch{account: newAccount(model.ListenerID{}, time.Minute), members: make([]member, 1)}
	m := &w.members[0]
	m.observe(full)
	m.observe(torn)
	require.EqualValues(t, 6, m.length)
	require.EqualValues(t, 5, m.limit)
	w.vanish(time.Unix(1_700_000_000, 0))
	require.EqualValues(t, 6, w.account.ledger.totals().QueueResets)

	m.observe(full)
	m.observe(torn)
	m.observe(torn)
	require.Zero(t, m.limit, "twice is true: listen(0) was called")
	m.observe(torn)
	require.Zero(t, m.limit)
}
