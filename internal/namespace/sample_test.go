package namespace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Of a namespace with a hundred thousand listeners a dump takes 50 ms, which all others wait for. Where a sample takes one, as of
// listeners that share an address, the next is a while later; the other listeners of the namespace are sampled meanwhile.
func TestExpensiveDumps(t *testing.T) {
	one, two, other := listening(8080, 1), listening(8080, 2), listening(9090, 3)
	s := &script{listeners: []sockdiag.Listener{one, two, other}}
	n, now := scripted(t, s)
	id := func(l *sockdiag.Listener) model.ListenerID { return model.ListenerID{NetNS: 7, Address: l.Address()} }
	n.Watch(now, []Listening{
		{ID: id(&one), Members: []sockdiag.Listener{one, two}}, {ID: id(&other), Members: []sockdiag.Listener{other}},
	})
	clock, dumps, cost := now, 0, 50*time.Millisecond
	n.fast.cost = func(fn func() error) (time.Duration, error) { return cost, fn() }
	s.during = func(call string) {
		if call == "Listeners" {
			dumps++
			clock = clock.Add(cost)
		}
	}
	second := func() {
		dumps, s.lookups = 0, 0
		for end := clock.Add(time.Second); clock.Before(end); clock = clock.Add(10 * time.Millisecond) {
			require.False(t, n.Sample(clock, time.Minute, true).Any())
		}
		for _, r := range n.Readings() {
			require.False(t, r.Closed)
		}
	}
	second()
	require.Contains(t, []int{1, 2}, dumps)
	require.Greater(t, s.lookups, 50)
	cost = 100 * time.Microsecond // as usual
	second()
	second()
	require.Greater(t, dumps, 90)

	cost = 50 * time.Millisecond
	second()
	s.listeners = []sockdiag.Listener{one, two}
	for end := clock.Add(time.Second); clock.Before(end); clock = clock.Add(10 * time.Millisecond) {
		n.Sample(clock, time.Minute, true)
	}
	require.Equal(t, []bool{false, true}, []bool{n.Readings()[0].Closed, n.Readings()[1].Closed}, "one that closes is found by the next dump")
}

// pairs is a namespace in which two listeners share an address, beside another one.
func pairs(t *testing.T, s *script, shared *Shared, now time.Time) *Namespace {
	t.Helper()
	one, two, other := listening(8080, 1), listening(8080, 2), listening(9090, 3)
	s.listeners = []sockdiag.Listener{one, two, other}
	n := New(7, 0, s, shared, time.Minute)
	_, err := n.List(now)
	require.NoError(t, err)
	id := func(l *sockdiag.Listener) model.ListenerID { return model.ListenerID{NetNS: 7, Address: l.Address()} }
	n.Watch(now, []Listening{
		{ID: id(&one), Members: []sockdiag.Listener{one, two}}, {ID: id(&other), Members: []sockdiag.Listener{other}},
	})
	return n
}

// Who has many network namespaces, each with listeners that share an address, has no more of the time for their dumps than who has one, be
// a dump in each cheap by itself.
func TestDumpsOfManyNamespaces(t *testing.T) {
	const cost = 900 * time.Microsecond
	for name, drops := range map[string]bool{"an address that is shared": false, "packets are dropped": true} {
		now, dumps, shared := time.Unix(1_700_000_000, 0), 0, new(Shared)
		var all []*Namespace
		for range 200 {
			s := &script{}
			n := pairs(t, s, shared, now)
			if drops {
				s.listeners = s.listeners[2:]
				_, err := n.List(now)
				require.NoError(t, err)
				n.Watch(now, []Listening{{ID: model.ListenerID{NetNS: 7, Address: s.listeners[0].Address()}, Members: s.listeners}})
			}
			n.fast.cost = func(fn func() error) (time.Duration, error) { return cost, fn() }
			s.during = func(call string) {
				if call == "Listeners" {
					dumps++
				}
				if drops && call == "Lookup" {
					s.drop(&s.listeners[0], 1)
				}
			}
			all = append(all, n)
		}
		seconds := func(n int) {
			dumps = 0
			for end := now.Add(time.Duration(n) * time.Second); now.Before(end); now = now.Add(10 * time.Millisecond) {
				for _, n := range all {
					n.Sample(now, time.Minute, true)
				}
			}
		}
		seconds(4)
		seconds(10)
		require.Less(t, time.Duration(dumps)*cost, 10*time.Second/dumpRest*5/4, name)
		require.Greater(t, dumps, len(all)/2, name)
		for _, n := range all[1:] {
			require.NoError(t, n.Close())
		}
		all = all[:1]
		seconds(4)
		seconds(1)
		require.Greater(t, dumps, 90, name)
		require.Equal(t, 1, shared.crowds.dumping)
	}
}

// Where a dump takes too long none is made with the turn of all samples. Lists are the samples of listeners that share an address.
func TestSamplesByLists(t *testing.T) {
	s, now := &script{}, time.Unix(1_700_000_000, 0)
	n := pairs(t, s, new(Shared), now)
	n.fast.cost = func(fn func() error) (time.Duration, error) { return 200 * time.Millisecond, fn() }
	list := func() {
		now = now.Add(time.Second)
		_, err := n.List(now)
		require.NoError(t, err)
	}
	sample := func() Alarm {
		now = now.Add(10 * time.Millisecond)
		return n.Sample(now, 50*time.Millisecond, true)
	}
	list()
	s.during = func(call string) { require.NotEqual(t, "Listeners", call) }
	for range 10 {
		require.Equal(t, Alarm{Lost: true}, sample(), "a list is wanted")
	}
	s.listeners[1].RecvQ = 6
	s.drop(&s.listeners[1], 3)
	list()
	at := now
	require.Equal(t, Alarm{Lost: true, Filled: true, Dropped: true}, sample())
	require.Equal(t, Alarm{Lost: true}, sample())
	list()
	r := n.Readings()[0]
	require.EqualValues(t, 6, r.Queue.Length)
	require.Equal(t, now, r.Queue.At)
	require.Equal(t, 50*time.Millisecond, r.Queue.FullFor)
	require.Equal(t, []time.Time{at, at}, []time.Time{r.Moved, r.Full})
	n.Books(func(b *losses.Books) {
		dropped := uint64(0)
		for _, a := range b.Accounts() {
			dropped += b.Losses(a, true).DroppedPackets
		}
		require.EqualValues(t, 3, dropped)
	})

	s.listeners = s.listeners[2:]
	list()
	sample()
	require.Equal(t, []bool{true, false}, []bool{n.Readings()[0].Closed, n.Readings()[1].Closed})
	require.False(t, sample().Any())
}

// Whose packets are dropped, in a namespace with thousands of listeners, does not keep the samples of all others waiting: what was
// dropped is split by dumps that take a tenth of the time, and where one takes long by the lists alone.
func TestDropsAmongManyListeners(t *testing.T) {
	for _, c := range []struct {
		cost        time.Duration
		least, most int // dumps a second
	}{{100 * time.Microsecond, 100, 300}, {5 * time.Millisecond, 10, 25}, {50 * time.Millisecond, 0, 0}} {
		s := &script{listeners: []sockdiag.Listener{listening(8080, 1), listening(9090, 2)}}
		n, now := scripted(t, s)
		n.fast.cost = func(fn func() error) (time.Duration, error) { return c.cost, fn() }
		_ = lost(t, n, now) // it is known what a dump costs
		dumps := 0
		s.during = func(call string) {
			if call == "Listeners" {
				dumps++
			}
			s.drop(&s.listeners[0], 1) // without an end
		}
		for end := now.Add(time.Second); now.Before(end); now = now.Add(10 * time.Millisecond) {
			alarm := n.Sample(now, time.Minute, true)
			require.True(t, alarm.Dropped)
			require.Equal(t, c.cost >= tooLong, alarm.Lost, "a list is wanted")
		}
		require.GreaterOrEqual(t, dumps, c.least, "%v", c.cost)
		require.LessOrEqual(t, dumps, c.most, "%v", c.cost)
		s.during = nil
		n.Sample(now, time.Minute, true)
		got := lost(t, n, now)
		require.Equal(t, s.drops, got.DroppedPackets+got.Unattributed)
		require.False(t, n.Sample(now.Add(10*time.Millisecond), time.Minute, true).Any())
	}
}

// While very many listeners are listed, samples are made.
func TestManyListenersAreListedBesideTheSamples(t *testing.T) {
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1), listening(9090, 2)}}
	n, now := scripted(t, s)
	other := New(8, 0, &script{}, n.shared, time.Minute)
	n.fast.cost = func(fn func() error) (time.Duration, error) { return time.Second, fn() }
	_, err := n.List(now)
	require.NoError(t, err)
	listed := false
	s.during = func(call string) {
		if call != "ListenersApart" {
			return
		}
		listed = true
		done := make(chan Alarm)
		go func() {
			other.Sample(now, time.Minute, true)
			s.drop(&s.listeners[0], 3)
			s.listeners[0].RecvQ = 6
			done <- n.Sample(now, time.Minute, true)
		}()
		require.Equal(t, Alarm{Dropped: true, Filled: true, Lost: true}, <-done)
	}
	_ = lost(t, n, now.Add(time.Second))
	require.True(t, listed)
	s.during = nil
	require.Equal(t, 6, int(n.Readings()[0].Queue.Length))
	require.True(t, n.Sample(now.Add(time.Second), time.Minute, true).Lost, "what was dropped meanwhile is owed")
	got := lost(t, n, now.Add(2*time.Second))
	require.EqualValues(t, 3, got.DroppedPackets)
	require.Zero(t, got.Unattributed)

	s.listeners = s.listeners[1:]
	_, err = n.List(now.Add(3 * time.Second))
	require.NoError(t, err)
	require.True(t, n.Readings()[0].Closed)

	// What they use together is kept from each other, as the race detector says.
	s.listeners, s.during = []sockdiag.Listener{listening(8080, 1), listening(9090, 2)}, nil
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 300 {
			n.Sample(now.Add(4*time.Second+time.Duration(i)*time.Millisecond), time.Minute, true)
		}
	}()
	for i := range 300 {
		_, err := n.List(now.Add(4*time.Second + time.Duration(i)*time.Millisecond))
		require.NoError(t, err)
		TurnoverOf(n)
	}
	<-ended
}
