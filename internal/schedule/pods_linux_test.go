package schedule

import (
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// Of a wave of pods, and of each pod in it.
const (
	wavePods   = 8
	podQueued  = 6 // a backlog of 5, full
	podDropped = 10
)

// served is a pod whose listener only a process of its own holds, as in life.
type served struct {
	*nettest.NS
	id     netns.ID
	inode  uint32
	server *os.Process
	end    func()
}

func newServed(t *testing.T) *served {
	t.Helper()
	p := &served{NS: nettest.Namespace(t)}
	p.Do(func() {
		id, err := netns.Current()
		require.NoError(t, err)
		l := nettest.Listen(t, nettest.ListenOptions{Address: "0.0.0.0:" + strconv.Itoa(nodePort), Backlog: podQueued - 1})
		p.id, p.inode = id, l.Inode
		file := l.File(t)
		server := p.Command("sleep", "300")
		server.ExtraFiles = []*os.File{file}
		require.NoError(t, server.Start())
		p.server = server.Process
		p.end = sync.OnceFunc(func() { _ = server.Process.Kill(); _ = server.Wait() })
		t.Cleanup(p.end)
		require.NoError(t, file.Close())
		l.Close()
		nettest.Queue(t, podAddress(), podQueued)
	})
	require.Eventually(t, func() bool { // nsenter is still on its way
		id, err := netns.OfPID("/proc", p.server.Pid)
		return err == nil && id == p.id
	}, time.Minute, time.Millisecond)
	return p
}

func podAddress() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), nodePort)
}

// Pods come, overflow and are killed while the queues are sampled: nothing is
// lost of what was seen, nothing stays behind, and no thread is left in a pod.
func TestPodsComeAndGo(t *testing.T) {
	waves := proof.Size(50, 5)
	home, err := netns.Current()
	require.NoError(t, err)
	start, passed := time.Now(), atomic.Int64{}
	n := newNode(t, func(o *Options) {
		o.MaxListeners = 2 * wavePods
		o.Now = func() time.Time { return start.Add(time.Duration(passed.Load())) }
	})
	scan := func() *model.Snapshot {
		passed.Add(int64(time.Minute))
		return n.scan(t)
	}
	stop := sampling(n.Scheduler)
	defer stop()

	var before held
	for wave := range waves {
		var ids []netns.ID
		t.Run(strconv.Itoa(wave), func(t *testing.T) {
			var pods []*served
			for range wavePods {
				pods = append(pods, newServed(t))
			}
			scan()
			for _, p := range pods {
				p.Do(func() { nettest.Overflow(t, podAddress(), podDropped) })
				ids = append(ids, p.id)
			}
			requirePods(t, scan(), pods)
			for _, p := range pods {
				p.end()
			}
			requireRetained(t, scan(), ids)
		})
		for _, id := range ids {
			require.Nil(t, n.space(id))
		}
		requireAtHome(t, home)
		now := n.holding(t)
		if wave == 1 { // tables have grown
			before = now
		}
		if wave > 1 {
			n.requireNoMoreThan(t, before)
		}
		t.Logf("after %d pods: %+v", (wave+1)*wavePods, now)
	}
}

// sampling samples all the time until it is stopped.
func sampling(s *Scheduler) (stop func()) {
	done := make(chan struct{})
	var loop sync.WaitGroup
	loop.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				s.Sample()
			}
		}
	})
	return func() { close(done); loop.Wait() }
}

func requirePods(t *testing.T, s *model.Snapshot, pods []*served) {
	t.Helper()
	for _, p := range pods {
		l := (&pod{id: p.id}).of(s)
		require.NotNil(t, l)
		require.Equal(t, p.inode, l.Inode)
		require.Equal(t, p.server.Pid, l.Process.PID)
		require.Equal(t, podQueued, l.AcceptQueue.Length)
		require.EqualValues(t, podDropped, l.Losses.DroppedPackets)
		for _, ns := range s.NetNS {
			if ns.ID == uint64(p.id) {
				require.EqualValues(t, podDropped, ns.Delta["ListenDrops"])
				require.Zero(t, ns.Unattributed)
			}
		}
	}
}

// requireRetained looks for what the pods had lost when they were killed: the
// drops, and the clients that stood in their queues.
func requireRetained(t *testing.T, s *model.Snapshot, ids []netns.ID) {
	t.Helper()
	kept := make(map[uint64]model.Totals)
	for _, g := range s.Retired {
		_, twice := kept[g.ID.NetNS]
		require.False(t, twice, "two series of a name: %v", g.ID)
		kept[g.ID.NetNS] = g.Totals
	}
	for _, id := range ids {
		var dropped uint64
		for _, packets := range kept[uint64(id)].Dropped {
			dropped += packets
		}
		require.EqualValues(t, podDropped, dropped)
		require.EqualValues(t, podQueued, kept[uint64(id)].QueueResets)
		require.False(t, slices.ContainsFunc(s.NetNS, func(ns model.NetNS) bool { return ns.ID == uint64(id) }))
	}
}

// requireAtHome checks the namespace of every thread of the process.
func requireAtHome(t *testing.T, home netns.ID) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, thread := range threads {
		link, err := os.Readlink("/proc/self/task/" + thread.Name() + "/ns/net")
		if err == nil { // else it has ended
			require.Equal(t, "net:["+strconv.FormatUint(uint64(home), 10)+"]", link)
		}
	}
}
