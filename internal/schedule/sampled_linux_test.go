package schedule

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// crowd is a listener with thousands of connections, whose walks are expensive.
type crowd struct {
	*world
	kernel *kernel
	next   uint64 // cookie
}

func newCrowd(t *testing.T, resting, serving int) *crowd {
	t.Helper()
	c := &crowd{kernel: knowable(nil)}
	c.kernel.walkTakes = 80 * time.Millisecond
	c.world = newWorld(t, c.kernel, func(o *Options) {
		o.Limits = watchlist.Overrides{MaxConnections: watchlist.ByHand(new(100_000), "flag"), MaxThreads: watchlist.ByHand(new(100_000), "flag")}
	})
	c.open(resting, true)
	c.open(serving, false)
	c.looping.Store(true)
	c.scanned()
	return c
}

// open lets clients come.
func (c *crowd) open(n int, idle bool) {
	kind := serving
	if idle {
		kind = resting
	}
	for range n {
		s := connected(8080, 1, kind)[0]
		c.next++
		s.Cookie, s.Inode = c.next, uint32(c.next)
		c.kernel.sockets = append(c.kernel.sockets, s)
	}
	c.kernel.counters["PassiveOpens"] += uint64(n)
}

// close lets some of the clients go.
func (c *crowd) close(n int) {
	for range n {
		at, last := rand.IntN(len(c.kernel.sockets)), len(c.kernel.sockets)-1
		c.kernel.sockets[at] = c.kernel.sockets[last]
		c.kernel.sockets = c.kernel.sockets[:last]
	}
}

// busy has each of some clients ask, or be answered, so that about a share of them waits
// for an answer.
func (c *crowd) busy(n int, share float64) {
	asks, idle := connected(8080, 1, serving)[0].Info, connected(8080, 1, resting)[0].Info
	for range n {
		s := &c.kernel.sockets[rand.IntN(len(c.kernel.sockets))]
		if s.Info = idle; rand.Float64() < share {
			s.Info = asks
		}
	}
}

// truth is what each connection that is there now adds up to.
func (c *crowd) truth() *model.Connections {
	var f connections.Found
	for i := range c.kernel.sockets {
		f.Add(&c.kernel.sockets[i])
	}
	return f.Behind(nil)
}

// The error that is stated holds in 99 % of 1,000 readings, while connections are closed
// and opened, and more and fewer of them wait for an answer.
func TestSampledPhases(t *testing.T) {
	c := newCrowd(t, 9000, 1500)
	const readings = 1000
	sampled, held, largest := 0, 0, 0
	for i := range readings {
		c.busy(1500, float64(i%100)/100)
		left := rand.IntN(6)
		c.close(left)
		c.open(rand.IntN(6), rand.IntN(2) == 0)
		c.pass(time.Second)
		got, truth := c.read(), c.truth()
		off := distance(got.Accepted, truth.Accepted)
		for p := range got.Phases {
			off = max(off, distance(got.Phases[p], truth.Phases[p]))
		}
		sum := 0
		for _, n := range got.Phases {
			sum += n
		}
		require.Equal(t, got.Accepted, sum)
		if got.Subset == 0 {
			require.Zero(t, off, "each is counted")
			require.Zero(t, got.Error)
			continue
		}
		sampled++
		require.Equal(t, 4096, got.Subset)
		if largest = max(largest, off); off <= got.Error {
			held++
		}
		require.Less(t, got.Error, got.Accepted/20, "it says something")
	}
	t.Logf("%d of %d readings were of a random part; the error held in %d of them; the largest was %d", sampled, readings, held, largest)
	require.Greater(t, sampled, readings*9/10)
	require.GreaterOrEqual(t, held, sampled*99/100)
	require.Positive(t, largest, "it is an estimate")
}

func distance(a, b int) int { return max(a-b, b-a) }

// More than are remembered are estimated, too, from a random part of them.
func TestSampledBeyondMemory(t *testing.T) {
	c := newCrowd(t, 28_000, 12_000)
	for range 20 {
		c.pass(time.Second)
		got := c.read()
		require.Equal(t, 4096, got.Subset)
		require.InDelta(t, 12_000, got.Phases[model.InService], 2*float64(got.Error))
		require.Equal(t, 40_000, got.Accepted, "none has gone")
		require.Equal(t, 40_000, got.States["ESTABLISHED"])
	}
	require.Equal(t, 1, c.kernel.walks)
	require.LessOrEqual(t, c.scanner.Remembered(c.list.Load().Namespaces[0].ID), 16_384)
}

// Where a verdict may depend on a single connection each is counted.
func TestWhatIsNotSampled(t *testing.T) {
	for name, change := range map[string]func(*crowd){
		"a request waits":             func(c *crowd) { c.each(20, func(s *sockdiag.Socket) { s.RecvQ = 100 }) },
		"clients have gone":           func(c *crowd) { c.each(20, func(s *sockdiag.Socket) { s.State, s.RecvQ = sockdiag.CloseWait, 101 }) },
		"clients stand in the queue":  func(c *crowd) { c.each(20, func(s *sockdiag.Socket) { s.Inode = 0 }) },
		"a packet was dropped":        func(c *crowd) { c.kernel.overflow(1); c.Sample() },
		"many clients have come":      func(c *crowd) { c.open(101, true) },
		"the counters are gone":       func(c *crowd) { delete(c.kernel.counters, "PassiveOpens") },
		"the latest count is old":     func(c *crowd) { c.pass(30 * time.Second) },
		"half of maxConnections used": func(c *crowd) { c.limits(20_000, 100_000) },
		"half of the threads busy":    func(c *crowd) { c.limits(100_000, 2_000) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, 9000, 1000)
			c.pass(time.Second)
			require.Positive(t, c.read().Subset)
			change(c)
			c.pass(time.Second)
			got := c.read()
			require.Zero(t, got.Subset)
			require.Equal(t, c.truth().Phases, got.Phases)
		})
	}
}

// each changes every nth connection.
func (c *crowd) each(nth int, change func(*sockdiag.Socket)) {
	for i := 0; i < len(c.kernel.sockets); i += nth {
		change(&c.kernel.sockets[i])
	}
}

// limits has others be in force.
func (c *crowd) limits(connections, threads int) {
	for _, e := range c.list.Load().In(c.list.Load().Namespaces[0].ID) {
		k := *e.Connector
		k.MaxConnections = &model.Setting[int]{Value: connections}
		k.MaxThreads = &model.Setting[int]{Value: threads}
		e.Connector = &k
	}
}

// A listener of few connections in the same namespace is counted, or keeps its reading
// where any of those that have come may be its own.
func TestFewBesideMany(t *testing.T) {
	c := newCrowd(t, 9000, 1000)
	next := *c.options()
	next.Ports = []uint16{8080, 9090}
	c.kernel.listeners = append(c.kernel.listeners, listensOn(9090, 2))
	few := connected(9090, 3, serving)
	for i := range few {
		few[i].Cookie = uint64(1_000_000 + i)
	}
	c.kernel.sockets = append(c.kernel.sockets, few...)
	require.NoError(t, c.adopt(next))
	c.pass(time.Minute)
	s := c.scanned()
	require.Len(t, s.Listeners, 2)
	of := func(port uint16) *model.Connections {
		c.publish(false)
		for i := range c.Snapshot().Listeners {
			if l := &c.Snapshot().Listeners[i]; l.Port == port {
				return l.Connections
			}
		}
		return nil
	}
	again := func() {
		c.pass(time.Second)
		r := c.list.Load()
		_, err := c.readConnections(r, r.Namespaces[0])
		require.NoError(t, err)
	}
	c.kernel.sockets = c.kernel.sockets[:len(c.kernel.sockets)-1]
	again()
	require.Positive(t, of(8080).Subset)
	require.Equal(t, 2, of(9090).Accepted)
	require.Zero(t, of(9090).Subset, "each is counted")
	require.Zero(t, of(9090).Age)
	c.open(3, true)
	again()
	require.Positive(t, of(8080).Subset)
	require.Zero(t, of(8080).Age)
	require.GreaterOrEqual(t, of(8080).Error, 3)
	require.Equal(t, time.Second, of(9090).Age, "as it was counted")
}
