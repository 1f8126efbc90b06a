package guest

import (
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// connections make the walks here long enough to be distinguished from everything else.
const connections = 3000

// crowd is a namespace with many connections.
func crowd(t *testing.T) *bench {
	t.Helper()
	b := &bench{NS: nettest.Namespace(t)}
	b.Sysctl(t, "net.core.somaxconn", strconv.Itoa(connections))
	b.Do(func() {
		b.l = nettest.Listen(t, nettest.ListenOptions{Backlog: connections})
		nettest.Queue(t, b.l.Addr, connections)
		b.dial(t)
	})
	return b
}

// nothing walks the table for a port that nobody has.
func nothing(t *testing.T, c *sockdiag.Conn) func() {
	return func() {
		if err := c.Sockets([]uint16{1}, sockdiag.Connected(), func(*sockdiag.Socket) error { return nil }); err != nil {
			t.Error(err)
		}
	}
}

// Before 6.9 an exact request waits for anybody's walk (inet_diag_table_mutex):
// what sockdiag makes of it (answersAtOnce) must be what is seen here.
func TestExactRequestBesideAWalk(t *testing.T) {
	inGuest(t)
	if runtime.NumCPU() < 2 {
		t.Skip("needs two processors")
	}
	b := crowd(t)
	var walker *sockdiag.Conn
	b.Do(func() {
		var err error
		walker, err = sockdiag.Dial()
		require.NoError(t, err)
	})
	defer walker.Close()
	exact := func() { b.listener(t) }
	walk, alone := median(20, nothing(t, walker)), quick(spread(500, exact))

	beside := besideWalks(nothing(t, walker), exact)
	waits := func() bool { return beside > 10*alone }
	if kernelAtLeast(t, 6, 9) {
		// The emulator's two threads may share one of this machine's processors.
		for try := 0; try < 20 && waits(); try++ {
			beside = min(beside, besideWalks(nothing(t, walker), exact))
		}
		require.False(t, waits(), "exact %v alone, %v beside a walk of %v", alone, beside, walk)
	}
	report("exact request waits for another's walk", "%s (%s beside one)", yes(waits()), ratio(beside, alone))
	report("walk of 6,000 sockets, in exact requests", "%.0f", float64(walk)/float64(alone))
}

// quick is the duration that a quarter of them did not exceed. What waits for a
// lock that is hardly ever free has no quick quarter; what has waited for a
// processor only now and then has one.
func quick(sorted []time.Duration) time.Duration { return sorted[len(sorted)/4] }

// besideWalks is how quick something is while another connection walks the table
// without a pause.
func besideWalks(walker func(), f func()) time.Duration {
	var stop atomic.Bool
	walks := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			walker()
			select {
			case walks <- struct{}{}:
			default:
			}
		}
	}()
	<-walks
	all := make([]time.Duration, 200)
	for i := range all {
		time.Sleep(time.Millisecond) // or it takes the lock again before the walk does
		start := time.Now()
		f()
		all[i] = time.Since(start)
	}
	stop.Store(true)
	<-done
	slices.Sort(all)
	return quick(all)
}

// A namespace made after net.ipv4.tcp_child_ehash_entries was set has a table of
// its own (6.1): a walk in it does not cost the host's sockets.
func TestOwnTable(t *testing.T) {
	inGuest(t)
	const setting = "/proc/sys/net/ipv4/tcp_child_ehash_entries"
	crowd(t)
	common := walkOfNothing(t)
	has := exists(setting)
	require.Equal(t, kernelAtLeast(t, 6, 1), has)
	if !has {
		report("tcp_child_ehash_entries", "no")
		return
	}
	write(t, setting, "1024")
	own := walkOfNothing(t)
	write(t, setting, "0")
	require.Less(t, own, common)
	report("tcp_child_ehash_entries", "yes: walk of an empty namespace %s with it", ratio(own, common))
}

// walkOfNothing is the time of a walk in a new namespace.
func walkOfNothing(t *testing.T) time.Duration {
	t.Helper()
	empty := &bench{NS: nettest.Namespace(t)}
	empty.Do(func() { empty.dial(t) })
	return median(30, nothing(t, empty.diag))
}

// Lookups of one listener that is not there and of one that is cost the same
// hash lookup; a LISTEN dump does not touch the connections.
func TestListenDumpPassesOverConnections(t *testing.T) {
	inGuest(t)
	few, many := newBench(t, 1), crowd(t)
	dump := func(c *sockdiag.Conn) func() {
		return func() {
			if err := c.Probe(); err != nil {
				t.Error(err)
			}
		}
	}
	walk := median(10, nothing(t, many.diag))
	a, z := median(100, dump(few.diag)), median(100, dump(many.diag))
	require.Less(t, z, walk)
	report("LISTEN dump beside 6,000 sockets", "%s of one beside none, %s of a walk", ratio(z, a), ratio(z, walk))
	err := many.diag.Lookup(sockdiag.ListenerID{Family: sockdiag.FamilyIPv4, Local: netip.MustParseAddrPort("127.0.0.1:1")}, 0, new(sockdiag.Listener))
	require.ErrorIs(t, err, sockdiag.ErrNotFound)
}
