package schedule

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// An overload from its first dropped packet to its end.
func TestScriptedOverload(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, nil)
	l := w.only(w.scanned())
	require.Equal(t, model.StatusOK, l.Verdict.Status)
	require.Equal(t, serverPID, l.Process.PID)
	require.Equal(t, 10000, *l.Process.OpenFilesLimit)

	k.sockets = append(connected(8080, 20, serving), connected(8080, 6, queued)...)
	w.reading.Acceptor = evidence.Acceptor{TID: 50, Activity: evidence.Parked, Futex: 0x1000}
	k.overflow(7)
	l = w.only(w.second())
	require.Equal(t, model.StatusLosing, l.Verdict.Status)
	require.Equal(t, model.CauseMaxConnections, l.Verdict.Cause)
	require.Equal(t, 20, l.Connections.Accepted)
	require.EqualValues(t, 6, l.AcceptQueue.Length)
	w.second()
	l = w.only(w.second())
	require.EqualValues(t, 7, dropped(l.Totals), "each with its cause")
	require.Zero(t, l.Totals.Pending)

	k.listeners[0].RecvQ, k.sockets = 0, connected(8080, 3, resting)
	for range 70 {
		w.second()
	}
	l = w.only(w.Snapshot())
	require.Equal(t, model.StatusOK, l.Verdict.Status)
	require.EqualValues(t, 7, dropped(l.Totals), "a counter does not fall")
	require.Zero(t, l.Losses.DroppedPackets, "the window is over")
	require.Equal(t, 3, l.Connections.Phases[model.Idle])
}

// Hold and Settle: a verdict stays for a while, and comes only when it has been
// so for long enough.
func TestScriptedSettling(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, func(o *Options) { o.Thresholds.Hold, o.Thresholds.Settle = 30*time.Second, 5*time.Second })
	require.Equal(t, model.StatusOK, w.only(w.scanned()).Verdict.Status)
	k.listeners[0].RecvQ, k.sockets = 6, append(connected(8080, 20, serving), connected(8080, 6, queued)...)
	for w.only(w.second()).Verdict.Status == model.StatusOK {
		require.Less(t, w.clock().Minute(), 10, "it is saturated in the end")
	}
	since := w.clock()
	require.Equal(t, model.StatusSaturated, w.only(w.Snapshot()).Verdict.Status)
	k.listeners[0].RecvQ, k.sockets = 0, nil
	for w.only(w.second()).Verdict.Status == model.StatusSaturated {
		require.Less(t, w.clock().Minute(), 10, "it ends")
	}
	require.GreaterOrEqual(t, w.clock().Sub(since), 5*time.Second)
}

// Requests that nobody serves while the process's threads wait for a CPU.
func TestScriptedCPUElsewhere(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, nil)
	w.scanned()
	k.sockets = connected(8080, 12, serving)
	w.reading.Stopped = evidence.Known(true)
	k.overflow(3)
	w.second()
	w.second()
	l := w.only(w.second())
	require.Equal(t, model.StatusLosing, l.Verdict.Status)
	require.Equal(t, model.CauseJVMPause, l.Verdict.Cause, "the process is stopped: no want of connections")
	require.EqualValues(t, 3, dropped(l.Totals))
}

// The fast socket fails: samples are counted as failed, the socket is replaced,
// and readers see that the kernel does not answer.
func TestScriptedSocketFails(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, nil)
	w.scanned()
	before := w.second().Self
	require.True(t, before.SourceUp["sock_diag"])
	k.fails = errors.New("no buffer space available")
	s := w.second()
	require.False(t, s.Self.SourceUp["sock_diag"])
	require.Greater(t, s.Self.FailedSamples, before.FailedSamples)
	require.Positive(t, k.redials)
	require.Error(t, w.Scan(context.Background()))
	k.fails = nil
	require.True(t, w.second().Self.SourceUp["sock_diag"])

	k.walkFails = errors.New("no such device")
	w.pass(time.Minute)
	s = w.second()
	require.False(t, s.Self.SourceUp["sock_diag"])
	require.True(t, slices.ContainsFunc(s.Unavailable, func(u model.Unavailable) bool { return u.Why != "" }))
	require.Error(t, w.Scan(context.Background()))
}

// A walk that the kernel cut short is partial, and no failure.
func TestScriptedPartialWalk(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, nil)
	k.walkFails = sockdiag.ErrInterrupted
	s := w.scanned()
	require.True(t, w.only(s).Connections.Partial)
	require.False(t, s.Self.SourceUp["sock_diag"])
}

// A second namespace comes with its processes, is watched, and ends with them:
// what its listener has lost is retained for an hour.
func TestScriptedNamespaceComesAndEnds(t *testing.T) {
	home, pod := newKernel(listensOn(8080, 1)), newKernel(listensOn(8080, 9))
	w := newWorld(t, home, func(o *Options) { o.AllNamespaces = true })
	w.scanned()
	w.process(77, "pod", 9)
	w.kernels[w.netns(77)] = pod
	w.pass(time.Minute)
	s := w.second()
	require.Len(t, s.Listeners, 2)
	pod.overflow(5)
	for range 3 {
		s = w.second()
	}
	at := slices.IndexFunc(s.Listeners, func(l model.Listener) bool { return l.Inode == 9 })
	require.Equal(t, model.StatusLosing, s.Listeners[at].Verdict.Status)

	w.exit(77)
	w.pass(time.Minute)
	s = w.second()
	require.Len(t, s.Listeners, 1)
	require.True(t, pod.closed)
	require.Len(t, s.Retired, 1)
	require.EqualValues(t, 5, dropped(s.Retired[0].Totals))
	w.pass(2 * time.Hour)
	require.Empty(t, w.second().Retired)
}

// A listener closes with clients in its queue, and another takes its place.
func TestScriptedRestart(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, nil)
	w.scanned()
	k.overflow(4)
	w.second()
	k.listeners = nil
	s := w.second()
	require.Len(t, s.Targets, 1)
	require.False(t, s.Targets[0].Up)
	down := w.only(s)
	require.Equal(t, model.StatusDown, down.Verdict.Status)

	w.process(43, "home", 2)
	k.listeners = []sockdiag.Listener{listensOn(8080, 2)}
	w.pass(time.Minute)
	w.second()
	l := w.only(w.second()) // its process has been read
	require.Equal(t, uint32(2), l.Inode)
	require.Equal(t, 43, l.Process.PID)
	require.EqualValues(t, 4, dropped(l.Totals), "the address's counter goes on")
	require.EqualValues(t, 6, l.Totals.QueueResets)
}

// Whoever else serves a port that is missed is searched for among all processes of the machine. That is no reason to list the
// listeners less often: the server may be back at any moment.
func TestScriptedRestartAmongManyProcesses(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, nil)
	inodes := make([]uint32, 100)
	for i := range 30 {
		for n := range inodes {
			inodes[n] = uint32(1000*(i+1) + n)
		}
		w.process(100+i, "another", inodes...)
	}
	const listening = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1\n" // of none of them
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "namespace-another-tcp"), []byte(listening), 0o600))
	w.scanned()
	w.tasks.listAgain(context.Background())
	require.Zero(t, w.lister.Searched(), "nothing is missed")
	k.listeners = nil
	w.pass(time.Second)
	cost := w.tasks.listAgain(context.Background())
	require.Less(t, cost, w.lister.Searched())
}

// Thousands of sockets in TIME_WAIT are not the listener's connections, and are
// not walked each time.
func TestScriptedForeignTimeWait(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, nil)
	k.sockets = append(connected(8080, 2, serving), connected(8080, 300, ended)...)
	k.sockstat = map[string]int{"inuse": 2, "tw": 2000}
	l := w.only(w.scanned())
	require.Equal(t, 2, l.Connections.Accepted)
	require.Equal(t, 300, l.Connections.States["TIME_WAIT"])
	k.sockets = connected(8080, 2, serving)
	w.pass(10 * time.Second)
	require.Equal(t, 300, w.only(w.second()).Connections.States["TIME_WAIT"], "as they were counted last")
	require.Nil(t, w.only(w.Snapshot()).Process.Busiest, "nobody's outgoing connections")
}

// A target names a process: its listeners are watched, and no others.
func TestScriptedTargetsOfAProcess(t *testing.T) {
	k := newKernel(listensOn(8080, 1), listensOn(9090, 8))
	w := newWorld(t, k, func(o *Options) {
		o.Ports = nil
		o.Targets = []watchlist.Target{{PID: serverPID, Labels: map[string]string{"app": "shop"}, Actuator: "http://127.0.0.1:8081/actuator"}}
	})
	l := w.only(w.scanned())
	require.EqualValues(t, 8080, l.Port)
	require.Len(t, w.options().Actuators(), 1)
	require.Equal(t, serverPID, w.options().Actuators()[0].PID)

	_, err := New(Sources{Sources: *w.lister.Sources}, func() Options { o := *w.options(); o.Targets = []watchlist.Target{{PID: 4711}}; return o }())
	require.ErrorContains(t, err, "pid 4711")
}

// More listeners than --max-listeners: each namespace has its share.
func TestScriptedFairShares(t *testing.T) {
	var many []sockdiag.Listener
	for i := range 10 {
		many = append(many, listensOn(uint16(9000+i), 100+uint32(i)))
	}
	w := newWorld(t, newKernel(many...), func(o *Options) { o.Ports, o.All, o.MaxListeners = nil, true, 3 })
	s := w.scanned()
	require.Len(t, s.Listeners, 3)
	require.Equal(t, 7, s.Omitted)
}

// The clocks themselves, for as long as it takes: the first snapshot, a change
// of the options, an overload, the end.
func TestScriptedRun(t *testing.T) {
	k := newKernel(listensOn(8080, 1), listensOn(9090, 1))
	k.sockets = connected(8080, 4, serving)
	w := newWorld(t, k, func(o *Options) { o.Now, o.SampleInterval = time.Now, 10*time.Millisecond })
	require.NoError(t, w.Healthy(), "nothing has begun")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	until := func(what string, shows func(*model.Snapshot) bool) {
		t.Helper()
		require.Eventually(t, func() bool { s := w.Snapshot(); return s != nil && shows(s) }, time.Minute, time.Millisecond, what)
	}
	until("a first snapshot", func(s *model.Snapshot) bool { return len(s.Listeners) == 1 && s.Listeners[0].Connections != nil })
	require.NoError(t, w.Healthy())

	next := *w.options()
	next.Ports, next.SampleInterval = []uint16{8080, 9090}, 5*time.Millisecond
	require.NoError(t, w.Reconfigure(ctx, next))
	until("both ports", func(s *model.Snapshot) bool { return len(s.Listeners) == 2 })
	next.SampleInterval = 0
	require.ErrorContains(t, w.Reconfigure(ctx, next), "must be positive")

	k.change(func() { k.overflow(5) })
	until("losing", func(s *model.Snapshot) bool {
		return s.Listeners[0].Verdict.Status == model.StatusLosing && dropped(s.Listeners[0].Totals) == 5
	})
	k.change(func() { k.fails = os.ErrDeadlineExceeded })
	until("blind", func(s *model.Snapshot) bool { return !s.Self.SourceUp["sock_diag"] })
	cancel()
	require.NoError(t, <-ended)
	require.ErrorIs(t, w.Reconfigure(ctx, next), context.Canceled)
}

// A one-shot ends in time, also where it is cancelled.
func TestScriptedObserve(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, func(o *Options) { o.Now = time.Now })
	require.NoError(t, w.Observe(t.Context(), 50*time.Millisecond))
	require.NotNil(t, w.only(w.Snapshot()).Losses)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.Observe(ctx, time.Hour), context.Canceled)
}

// A one-shot whose first listing takes longer than its interval waits for it: what is
// dropped from then on is counted, not taken for older than the listener is known.
func TestScriptedObserveOnASlowMachine(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, func(o *Options) { o.Now, o.Ports, o.PIDs = time.Now, nil, []int{serverPID} })
	var slow, late sync.Once
	k.listing = func() {
		slow.Do(func() { time.Sleep(grace + 200*time.Millisecond) })
		if !w.looping.Load() { // the second scan
			late.Do(func() { k.change(func() { k.overflow(5) }) })
		}
	}
	require.NoError(t, w.Observe(t.Context(), 10*time.Millisecond))
	require.EqualValues(t, 5, w.only(w.Snapshot()).Losses.DroppedPackets)
}

// A one-shot without the right to follow handshakes sees the clients of the namespace itself that have no answer; not
// where the listener dropped packets, be it after the listing.
func TestScriptedLocalClients(t *testing.T) {
	for name, tt := range map[string]struct {
		dropped int
		cause   model.Cause
	}{
		"in front of the listener": {0, model.CauseBeforeListener},
		"by the listener":          {3, model.CauseNone},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(listensOn(8080, 1))
			w := newWorld(t, k, func(o *Options) { o.Now = time.Now })
			k.sockets = []sockdiag.Socket{{
				Family: sockdiag.FamilyIPv4, State: sockdiag.SynSent, HasInfo: true, Inode: 7, Expires: 400,
				Local: netip.MustParseAddrPort("127.0.0.1:40000"), Remote: netip.MustParseAddrPort("127.0.0.1:8080"),
				Info: sockdiag.TCPInfo{Size: 232, Retransmits: 1, RTO: time.Second},
			}}
			k.walked = func() {
				if !w.looping.Load() && tt.dropped > 0 {
					k.overflow(tt.dropped)
					k.listeners[0].RecvQ = 0
				}
			}
			require.NoError(t, w.Observe(t.Context(), model.TriedWithin))
			l := w.only(w.Snapshot())
			require.Equal(t, 1, l.Connections.LocalTrying)
			require.Equal(t, model.StatusLosing, l.Verdict.Status)
			require.Equal(t, tt.cause, l.Verdict.Cause, l.Verdict.Summary)
		})
	}
}

// No packet was dropped and the queue has room, but clients stand in it: the acceptor
// shows that the connections are used up, and not the threads alone, whose limit is all
// that is known.
func TestScriptedStandingQueue(t *testing.T) {
	for name, tt := range map[string]struct {
		acceptor evidence.Acceptor
		cause    model.Cause
	}{
		"at the latch": {evidence.Acceptor{TID: 50, Activity: evidence.Parked, Futex: 0x1000}, model.CauseMaxConnections},
		"accepting":    {evidence.Acceptor{TID: 50, Activity: evidence.Accepting}, model.CauseNone},
		"not readable": {evidence.Acceptor{}, model.CauseNone},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(listensOn(8080, 1))
			w := newWorld(t, k, func(o *Options) { o.Limits.MaxConnections = nil })
			w.reading.Safepoint, w.reading.Acceptor = evidence.Known(evidence.Safepoint{WakesFirst: true, Unclear: true}), tt.acceptor
			w.scanned()
			k.listeners[0].RecvQ, k.sockets = 1, append(connected(8080, 8, serving), connected(8080, 1, queued)...)
			w.second()
			require.Equal(t, tt.acceptor.Activity == evidence.Parked, w.tasks.pending.Load(), "a one-shot waits for what decides")
			for range 3 {
				w.second()
			}
			require.False(t, w.tasks.pending.Load())
			l := w.only(w.second())
			require.Equal(t, tt.cause, l.Verdict.Cause, l.Verdict.Summary)
			require.Zero(t, l.Losses.DroppedPackets)
			if tt.cause == model.CauseMaxConnections {
				require.Equal(t, 8, l.Connector.MaxConnections.Value)
				require.Equal(t, model.SourceInferred, l.Connector.MaxConnections.Kind)
			}
			k.listeners[0].RecvQ, k.sockets = 0, nil
			w.second()
			before := w.facts.Judgements(l.ID)
			w.second()
			require.Equal(t, before, w.facts.Judgements(l.ID), "the queue is empty: nobody is asked why")
		})
	}
}
