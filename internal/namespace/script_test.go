package namespace

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// script is a kernel that a test writes: its listeners, its counters, and what
// goes wrong.
type script struct {
	listeners []sockdiag.Listener
	drops     uint64 // ListenDrops, all of them overflows
	fails     error  // of the sample path's socket
	redials   int
	devices   map[uint32]string
	asked     int // for the devices
	lookups   int
	between   func(call int) // before each reading of the counters
	calls     int
	during    func(call string) // while it is asked
}

func (s *script) isAsked(call string) {
	if s.during != nil {
		s.during(call)
	}
}

func (s *script) Lookup(asks []sockdiag.Ask, answer func(int, *sockdiag.Listener, error)) error {
	s.isAsked("Lookup")
	s.lookups++
	if s.fails != nil {
		return s.fails
	}
	for i, ask := range asks {
		l, err := s.find(ask)
		answer(i, l, err)
	}
	return nil
}

func (s *script) find(ask sockdiag.Ask) (*sockdiag.Listener, error) {
	for i := range s.listeners {
		if l := &s.listeners[i]; l.ListenerID == ask.ID && l.Inode == ask.Inode {
			return l, nil
		}
	}
	return nil, sockdiag.ErrNotFound
}

func (s *script) Listeners(_ func(), found func(*sockdiag.Listener) error) error {
	s.isAsked("Listeners")
	if s.fails != nil {
		return s.fails
	}
	for i := range s.listeners {
		if err := found(&s.listeners[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) ListenersApart(_ func(), found func(*sockdiag.Listener) error) error {
	s.isAsked("ListenersApart")
	for i := range s.listeners {
		if err := found(&s.listeners[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) ListenCounters(out *netstat.ListenCounters) error {
	s.isAsked("ListenCounters")
	if s.calls++; s.between != nil {
		s.between(s.calls)
	}
	out.ListenDrops, out.ListenOverflows = s.drops, s.drops
	return nil
}

func (s *script) Counters(out map[string]uint64) error {
	s.isAsked("Counters")
	out["ListenDrops"], out["ListenOverflows"] = s.drops, s.drops
	return nil
}

func (s *script) Walk(sockdiag.Wanted, func(), func(*sockdiag.Socket) error) error {
	s.isAsked("Walk")
	return nil
}

func (s *script) Connections([]sockdiag.ConnectionID, func(int, *sockdiag.Socket, error)) error {
	s.isAsked("Connections")
	return nil
}

func (s *script) Sockstat() (map[string]int, error) {
	s.isAsked("Sockstat")
	return nil, nil
}

func (s *script) Sysctls() (map[string]int, error) {
	s.isAsked("Sysctls")
	return nil, nil
}

func (s *script) Rest() error {
	s.isAsked("Rest")
	return nil
}

func (s *script) Close() error {
	s.isAsked("Close")
	return nil
}

func (s *script) Devices([]uint32) (map[uint32]string, error) {
	s.isAsked("Devices")
	s.asked++
	return s.devices, nil
}

func (s *script) Missing([]netip.Addr) ([]netip.Addr, error) {
	s.isAsked("Missing")
	return nil, nil
}

func (s *script) Redial() error {
	s.isAsked("Redial")
	s.redials++
	return nil
}

func listening(port uint16, inode uint32) sockdiag.Listener {
	return sockdiag.Listener{
		ListenerID: sockdiag.ListenerID{Family: sockdiag.FamilyIPv4, Local: netip.AddrPortFrom(netip.IPv4Unspecified(), port)},
		Inode:      inode, SendQ: 5, HasDrops: true,
	}
}

// drop drops n packets at a listener, nil for one that has opened and closed.
func (s *script) drop(l *sockdiag.Listener, n uint32) {
	s.drops += uint64(n)
	if l != nil {
		l.Drops += n
	}
}

// scripted is a namespace whose first listener is watched.
func scripted(t *testing.T, s *script) (*Namespace, time.Time) {
	t.Helper()
	n := New(7, 0, s, new(Shared), time.Minute)
	now := time.Unix(1_700_000_000, 0)
	list, err := n.List(now)
	require.NoError(t, err)
	n.Watch(now, []Listening{{ID: list[0].ID, Members: []sockdiag.Listener{list[0].Listener}}})
	return n, now
}

// lost is what the first listener lost in the window, after another checkpoint.
func lost(t *testing.T, n *Namespace, now time.Time) (out *model.Losses) {
	t.Helper()
	_, err := n.List(now)
	require.NoError(t, err)
	n.Books(func(b *losses.Books) {
		for _, a := range b.Accounts() {
			out = b.Losses(a, true)
		}
		require.Equal(t, b.Window().Delta["ListenDrops"], out.DroppedPackets-out.Unattributed+b.Window().Unattributed, "conservation")
	})
	return out
}

// Another program's listener overflowed and closed between two lists: nobody has
// seen it. An idle server next to it has lost nothing.
func TestDropsOfAListenerThatNobodySawAreNotTheIdleOnes(t *testing.T) {
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1)}}
	n, now := scripted(t, s)
	s.drop(nil, 40)
	require.Zero(t, n.Sample(now.Add(10*time.Millisecond), time.Second, true))
	got := lost(t, n, now.Add(time.Second))
	require.Zero(t, got.DroppedPackets)
	require.Zero(t, got.Unattributed)
}

// Where its own queue was seen full, what nobody else accounts for is its own.
func TestUnattributedDropsOfAFullQueue(t *testing.T) {
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1)}}
	n, now := scripted(t, s)
	s.listeners[0].RecvQ = 6
	require.Equal(t, Alarm{Filled: true}, n.Sample(now.Add(10*time.Millisecond), time.Second, true))
	require.Zero(t, n.Sample(now.Add(20*time.Millisecond), time.Second, true), "it is full still")
	s.drop(nil, 40)
	require.EqualValues(t, 40, lost(t, n, now.Add(time.Second)).Unattributed)
}

func TestSampleAttributesDropsAtOnce(t *testing.T) {
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1), listening(9090, 2)}}
	n, now := scripted(t, s)
	s.drop(&s.listeners[0], 3)
	require.Equal(t, Alarm{Dropped: true}, n.Sample(now.Add(10*time.Millisecond), time.Second, true))
	require.True(t, n.Troubled(now))
	n.Books(func(b *losses.Books) {
		for _, a := range b.Accounts() {
			require.True(t, a.Waits(), "for its cause")
		}
		require.EqualValues(t, 3, b.Window().Counters["ListenDrops"], "the window is of now")
	})
}

// A torn reading: packets are dropped between the counters and the sockets.
func TestDropsWhileTheyAreRead(t *testing.T) {
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1)}}
	n, now := scripted(t, s)
	s.between = func(int) { s.drop(&s.listeners[0], 1) }
	s.drop(&s.listeners[0], 5)
	n.Sample(now.Add(10*time.Millisecond), time.Second, true)
	s.between = nil
	got := lost(t, n, now.Add(time.Second))
	require.Equal(t, s.drops, got.DroppedPackets+got.Unattributed)
}

// A socket that does not answer is counted, and replaced.
func TestSamplesThatFail(t *testing.T) {
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1)}}
	n, now := scripted(t, s)
	s.fails = errors.New("no buffer space available")
	for i := range redialAfter {
		require.Zero(t, s.redials)
		require.Equal(t, i < redialAfter, n.Answers())
		require.Equal(t, Alarm{Failed: true}, n.Sample(now.Add(time.Duration(i)*time.Millisecond), time.Second, true))
	}
	require.Equal(t, 1, s.redials)
	require.False(t, n.Answers())
	s.fails = nil
	require.Zero(t, n.Sample(now.Add(time.Second), time.Second, true))
	require.True(t, n.Answers())
}

// The sample path asks for no names, and a name is asked for again: an interface
// can be renamed.
func TestNamesOfInterfaces(t *testing.T) {
	bound := listening(8080, 1)
	bound.Interface = 3
	s := &script{listeners: []sockdiag.Listener{bound}, devices: map[uint32]string{3: "eth0"}}
	n, now := scripted(t, s)
	name := func(later time.Duration) string {
		list, err := n.List(now.Add(later))
		require.NoError(t, err)
		return list[0].ID.Device
	}
	require.Equal(t, "eth0", name(time.Second))
	asked := s.asked
	s.drop(&s.listeners[0], 1)
	n.Sample(now.Add(time.Second), time.Second, true)
	require.Equal(t, asked, s.asked)
	s.devices = map[uint32]string{3: "eth1"}
	require.Equal(t, "eth0", name(2*time.Second))
	require.Equal(t, "eth1", name(deviceRest+2*time.Second))
}

// A queue is reset once, whichever reader finds it first.
func TestListenerCloses(t *testing.T) {
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1)}}
	n, now := scripted(t, s)
	s.listeners[0].RecvQ = 4
	n.Sample(now.Add(10*time.Millisecond), time.Second, true)
	s.listeners = nil
	require.True(t, n.Sample(now.Add(20*time.Millisecond), time.Second, true).Lost)
	n.Sample(now.Add(30*time.Millisecond), time.Second, true)
	require.True(t, n.Readings()[0].Closed)
	require.EqualValues(t, 4, lost(t, n, now.Add(time.Second)).QueueResets)
}

func TestClosedNamespaceAsksNothing(t *testing.T) {
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1)}}
	n, now := scripted(t, s)
	s.drop(&s.listeners[0], 9)
	left := n.Leave(now.Add(time.Second))
	require.Len(t, left, 1)
	require.True(t, left[0].Waits(), "its last drops are on its account")
	require.Equal(t, Alarm{Calm: true}, n.Sample(now.Add(time.Second), time.Second, true))
	_, err := n.List(now.Add(time.Second))
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, n.Walk(sockdiag.Wanted{}, nil, nil), ErrClosed)
}

// Calm is what has been empty for ten seconds, with nothing dropped, nothing new and
// nothing failed: it waits for its turn.
func TestCalm(t *testing.T) {
	for name, happens := range map[string]func(*script, *Namespace, time.Time){
		"a client waits":      func(s *script, _ *Namespace, _ time.Time) { s.listeners[0].RecvQ = 1 },
		"a packet is dropped": func(s *script, _ *Namespace, _ time.Time) { s.drop(&s.listeners[0], 1) },
		"no answer":           func(s *script, _ *Namespace, _ time.Time) { s.fails = errors.New("no answer") },
		"another listener": func(s *script, n *Namespace, now time.Time) {
			s.listeners = append(s.listeners, listening(9090, 2))
			list, err := n.List(now)
			require.NoError(t, err)
			n.Watch(now, []Listening{
				{ID: list[0].ID, Members: []sockdiag.Listener{list[0].Listener}},
				{ID: list[1].ID, Members: []sockdiag.Listener{list[1].Listener}},
			})
		},
	} {
		s := &script{listeners: []sockdiag.Listener{listening(8080, 1)}}
		n, now := scripted(t, s)
		sampleUntil := func(end time.Time) {
			for ; now.Before(end); now = now.Add(100 * time.Millisecond) {
				n.Sample(now, time.Second, true)
			}
		}
		calm := func() bool {
			before := s.lookups
			calm := n.Sample(now, time.Second, false).Calm
			require.Equal(t, s.lookups == before, calm)
			return calm
		}
		sampleUntil(now.Add(9 * time.Second))
		require.False(t, calm(), "it is watched only since")
		sampleUntil(now.Add(2 * time.Second))
		require.True(t, calm())
		happens(s, n, now)
		n.Sample(now, time.Second, true)
		require.False(t, calm(), name)
		s.listeners[0].RecvQ, s.fails = 0, nil
		sampleUntil(now.Add(9 * time.Second))
		require.False(t, calm(), name)
		sampleUntil(now.Add(2 * time.Second))
		require.True(t, calm(), name)
	}
}

// Between the turns those are asked for whose queues are not empty, or have not been for long: of many others that come and go no dump is made.
func TestBetweenTheTurns(t *testing.T) {
	const others = 100
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1)}}
	for i := range others {
		s.listeners = append(s.listeners, listening(9000+uint16(i), uint32(2+i)))
	}
	s.listeners[0].RecvQ = 1
	n, now := scripted(t, s)
	list, err := n.List(now)
	require.NoError(t, err)
	var watched []Listening
	for _, l := range list {
		watched = append(watched, Listening{ID: l.ID, Members: []sockdiag.Listener{l.Listener}})
	}
	n.Watch(now, watched)
	asked, dumps := 0, 0
	s.during = func(call string) {
		switch call {
		case "Lookup":
			asked += len(n.fast.asks)
		case "Listeners":
			dumps++
		}
	}
	sample := func(turn bool) (int, int) {
		asked, dumps = 0, 0
		now = now.Add(10 * time.Millisecond)
		require.False(t, n.Sample(now, time.Second, turn).Calm)
		return asked, dumps
	}
	of := func(asked, dumps int) []int { return []int{asked, dumps} }
	require.Equal(t, []int{0, 1}, of(sample(true)))
	require.Equal(t, []int{1, 0}, of(sample(false)), "the others came behind it")
	s.listeners[50].RecvQ = 3
	require.Equal(t, []int{1, 0}, of(sample(false)))
	require.EqualValues(t, 0, n.Readings()[50].Queue.Length)
	require.Equal(t, []int{0, 1}, of(sample(true)))
	require.EqualValues(t, 3, n.Readings()[50].Queue.Length)
	require.Equal(t, []int{2, 0}, of(sample(false)))
	require.Equal(t, now, n.Readings()[50].Queue.At)
	s.listeners[50].RecvQ = 0
	sample(false)
	now = now.Add(calmAfter)
	sample(true)
	require.Equal(t, []int{1, 0}, of(sample(false)))

	s.fails = errors.New("no answer")
	for range redialAfter {
		require.Zero(t, s.redials)
		require.True(t, n.Sample(now, time.Second, false).Failed)
	}
	require.Equal(t, 1, s.redials)
}

// Where a listener comes each second the samples of a namespace whose queues are empty are no more than those of another.
func TestCalmBesideNewListeners(t *testing.T) {
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1)}}
	n, now := scripted(t, s)
	come := func(i int) {
		now = now.Add(time.Second)
		s.listeners = []sockdiag.Listener{s.listeners[0], listening(9000+uint16(i), uint32(2+i))}
		list, err := n.List(now)
		require.NoError(t, err)
		n.Watch(now, []Listening{
			{ID: list[0].ID, Members: []sockdiag.Listener{list[0].Listener}},
			{ID: list[1].ID, Members: []sockdiag.Listener{list[1].Listener}},
		})
	}
	for i := range 30 {
		come(i)
		require.Equal(t, i >= 10, n.Sample(now, time.Second, false).Calm, i)
	}
	now = now.Add(calmAfter)
	come(30)
	require.False(t, n.Sample(now, time.Second, false).Calm)
	s.listeners[0].RecvQ = 1
	now = now.Add(2 * calmAfter)
	n.Sample(now, time.Second, true)
	come(31)
	require.False(t, n.Sample(now, time.Second, false).Calm, "a client waits")
}

// While the kernel is asked nobody who wants to know what is known has to wait.
func TestNothingIsLockedWhileTheKernelIsAsked(t *testing.T) {
	s := &script{listeners: []sockdiag.Listener{listening(8080, 1)}}
	n, now := scripted(t, s)
	asked := make(map[string]int)
	s.during = func(call string) {
		asked[call]++
		require.True(t, n.mu.TryLock(), "%s", call)
		n.mu.Unlock()
		require.Len(t, n.Readings(), 1)
	}
	later := func() time.Time { now = now.Add(time.Second); return now }
	s.drop(&s.listeners[0], 1)
	require.True(t, n.Sample(later(), time.Second, true).Dropped)
	s.listeners = append(s.listeners, listening(9090, 2))
	list, err := n.List(later())
	require.NoError(t, err)
	require.Len(t, list, 2)
	n.ReadSysctls(now, 0)
	n.ReadSockstat()
	require.NoError(t, n.Prepare())
	require.NoError(t, n.Walk(sockdiag.Wanted{}, nil, nil))
	require.NoError(t, n.Connections(nil, nil))
	TurnoverOf(n)
	s.fails = errors.New("no answer")
	for range redialAfter {
		n.Sample(later(), time.Second, true)
	}
	s.fails = nil
	n.Leave(later())
	for _, call := range []string{"Lookup", "Listeners", "ListenCounters", "Counters", "Walk", "Connections", "Sockstat", "Sysctls", "Redial", "Close"} {
		require.NotZero(t, asked[call], call)
	}
}
