package schedule

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// knowable is a kernel whose walks are expensive and whose connections have
// cookies, so that asking for them exactly is cheaper.
func knowable(sockets []sockdiag.Socket) *kernel {
	k := newKernel(listensOn(8080, 1))
	k.walkTakes = 5 * time.Millisecond
	for i := range sockets {
		sockets[i].Cookie = uint64(1 + i)
	}
	k.sockets = sockets
	k.counters["PassiveOpens"], k.counters["ActiveOpens"] = uint64(len(sockets)), 7
	return k
}

// counts has the kernel count its sockets.
func (w *world) counts(k *kernel, stat map[string]int) {
	k.sockstat = stat
	w.list.Load().Namespaces[0].ReadSockstat()
}

// read reads the connections once more.
func (w *world) read() *model.Connections {
	w.t.Helper()
	r := w.list.Load()
	_, err := w.readConnections(r, r.Namespaces[0])
	require.NoError(w.t, err)
	w.publish(false)
	return w.only(w.Snapshot()).Connections
}

// As long as no connection has come the known ones are asked for, and what has
// become of them is seen.
func TestKnownConnectionsAreAskedFor(t *testing.T) {
	k := knowable(append(connected(8080, 15, serving), connected(8080, 5, resting)...))
	w := newWorld(t, k, nil)
	w.looping.Store(true)
	require.Equal(t, 20, w.only(w.scanned()).Connections.Accepted)
	walks := k.walks

	k.sockets = k.sockets[1:]                                            // one was reset
	k.sockets[0].State, k.sockets[0].Inode = sockdiag.FinWait2, 0        // one was closed
	k.sockets[1].Info.LastDataSent, k.sockets[1].Info.DataSegsOut = 0, 1 // one was answered
	k.sockets[2].State, k.sockets[2].RecvQ = sockdiag.CloseWait, 1       // one client gave up
	k.sockets[len(k.sockets)-1].Info.LastDataRecv = 0                    // another request came
	k.sockets[len(k.sockets)-1].Info.LastDataSent = time.Second          //
	k.sockets = append(k.sockets, connected(9090, 3, serving)...)        // which nobody watches
	w.pass(time.Second)
	c := w.read()
	require.Equal(t, walks, k.walks)
	require.Positive(t, k.exact)
	require.Equal(t, 18, c.Accepted)
	require.Equal(t, map[string]int{"ESTABLISHED": 17, "CLOSE_WAIT": 1, "FIN_WAIT2": 1}, c.States)
	require.Equal(t, 5, c.Phases[model.Idle])
	require.Equal(t, 1, c.Phases[model.ClientClosed])
	require.Equal(t, 12, c.Phases[model.InService])
	require.Equal(t, w.clock(), c.At)
}

// Whatever makes the known ones less than all leads to a walk.
func TestNewConnectionsAreWalkedFor(t *testing.T) {
	for name, change := range map[string]func(*kernel, *world){
		"one was accepted":         func(k *kernel, _ *world) { k.counters["PassiveOpens"]++ },
		"one was opened":           func(k *kernel, _ *world) { k.counters["ActiveOpens"]++ },
		"the counters are gone":    func(k *kernel, _ *world) { delete(k.counters, "PassiveOpens") },
		"the latest walk is old":   func(_ *kernel, w *world) { w.pass(10 * time.Minute) },
		"some are in TIME_WAIT":    func(k *kernel, w *world) { w.counts(k, map[string]int{"tw": 1}); w.pass(30 * time.Second) },
		"TIME_WAIT is not known":   func(k *kernel, w *world) { w.counts(k, nil); w.pass(30 * time.Second) },
		"they cannot be asked for": func(k *kernel, _ *world) { k.exactFails = errors.New("no answer") },
	} {
		t.Run(name, func(t *testing.T) {
			k := knowable(connected(8080, 20, serving))
			w := newWorld(t, k, nil)
			w.looping.Store(true)
			w.scanned()
			w.counts(k, map[string]int{"tw": 0})
			w.pass(30 * time.Second)
			walks := k.walks
			require.Equal(t, 20, w.read().Accepted)
			require.Equal(t, walks, k.walks, "nothing in TIME_WAIT: a walk would show nothing else")
			k.sockets = append(k.sockets, connected(8080, 25, serving)[20:]...)
			change(k, w)
			w.pass(time.Second)
			require.Equal(t, 25, w.read().Accepted)
			require.Equal(t, walks+1, k.walks)
		})
	}
}

// What reads once has nothing to ask for later.
func TestOneShotRemembersNoConnections(t *testing.T) {
	for _, looping := range []bool{false, true} {
		w := newWorld(t, knowable(connected(8080, 20, serving)), nil)
		w.looping.Store(looping)
		require.Equal(t, 20, w.only(w.scanned()).Connections.Accepted)
		require.Equal(t, looping, w.scanner.Remembered(w.list.Load().Namespaces[0].ID) == 20)
	}
}

// A calm namespace whose walk costs more than is ever saved up is read all the same; in
// trouble it is read once for what it cost.
func TestExpensiveWalks(t *testing.T) {
	w := newWorld(t, knowable(connected(8080, 3, serving)), nil)
	w.scanned()
	r, walks := w.list.Load(), make(paces[uint64])
	w.pass(time.Minute)
	at := w.clock()
	walks.of(r.Namespaces[0].ID).began(at.Add(-time.Minute), 3*capacity, false)
	work := &tasks{scheduler: w.Scheduler, walks: walks}
	_, n, troubled := work.nextReading(r, at, capacity-reserve)
	require.NotNil(t, n)
	require.False(t, troubled)
	_, n, _ = work.nextReading(r, at, capacity-reserve-1)
	require.Nil(t, n, "not before all is saved up that can be")

	n = r.Namespaces[0]
	walks.of(n.ID).began(at, capacity, true)
	require.Equal(t, at.Add(20*time.Second), walks.of(n.ID).paid(1), "3 % of a core")
}

// In trouble the first reading is made at once; another of half a second waits until as much
// is saved up, or it is paid for.
func TestExpensiveWalksInTrouble(t *testing.T) {
	const cost = 450 * time.Millisecond
	k := knowable(connected(8080, 3, serving))
	w := newWorld(t, k, nil)
	w.scanned()
	k.overflow(1)
	w.pass(10 * time.Millisecond)
	w.Sample()
	at := w.clock()
	r, walks := w.list.Load(), make(paces[uint64])
	p := walks.of(r.Namespaces[0].ID)
	p.began(at.Add(-time.Second), cost, false)
	work := &tasks{scheduler: w.Scheduler, walks: walks}
	reads := func(after, level time.Duration) bool {
		_, n, _ := work.nextReading(r, at.Add(after), level)
		return n != nil
	}
	require.False(t, reads(0, -1))
	require.True(t, reads(0, 0), "the first")
	p.began(at, cost, true)
	require.False(t, reads(time.Second, cost-1))
	require.True(t, reads(time.Second, cost))
	require.True(t, reads(15*time.Second, -1), "3 % of a core")
}
