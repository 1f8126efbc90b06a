package clients_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/clients/accounts"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/tap"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

const netns = 4026531840

// fake is a tap whose report the test writes, and a source of snapshots.
type fake struct {
	t       *testing.T
	report  tap.Report
	ports   []uint16
	closed  int
	alone   bool
	opened  int
	alerts  int
	refuses error

	now      time.Time
	gone     []model.RetainedTotals
	snapshot *model.Snapshot
	follower *clients.Follower
	state    *accounts.State
}

// source has one snapshot at a time.
type source struct{ latest **model.Snapshot }

func (s source) Snapshot() *model.Snapshot { return *s.latest }
func (s source) Next() <-chan struct{}     { return nil }

func newFake(t *testing.T, mode clients.Mode) *fake {
	f := &fake{t: t, now: time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)}
	f.follower = clients.NewFollower(mode, source{&f.snapshot},
		func(w clients.Where) (clients.Tap, error) {
			require.EqualValues(t, netns, w.NetNS)
			require.Equal(t, 4, w.SynAckRetries)
			require.False(t, w.Many)
			f.opened++
			f.ports = w.Ports
			return f, f.refuses
		})
	return f
}

func (f *fake) Report() (tap.Report, error)   { f.asked(); return f.report, nil }
func (f *fake) SetPorts(ports []uint16) error { f.asked(); f.ports = ports; return nil }
func (f *fake) Alone() bool                   { f.asked(); return f.alone }
func (f *fake) SetListened([]netip.AddrPort)  { f.asked() }
func (f *fake) Alert()                        { f.asked(); f.alerts++ }
func (f *fake) Close() error                  { f.asked(); f.closed++; return nil }

// asked fails where the tap, which asks the kernel, is asked with the follower's lock.
func (f *fake) asked() {
	if f.follower != nil {
		require.False(f.t, f.follower.Locked())
	}
}

// look publishes a snapshot of these listeners, a second after the one before.
func (f *fake) look(interval time.Duration, listeners ...model.Listener) *model.Snapshot {
	f.t.Helper()
	f.now = f.now.Add(time.Second)
	f.snapshot = &model.Snapshot{
		Time: f.now, Interval: interval, Listeners: listeners,
		Targets: []model.Target{{Port: 8080, NetNS: netns}},
		NetNS:   []model.NetNS{{ID: netns, Sysctl: map[string]int{"tcp_synack_retries": 4}}},
		Retired: f.gone,
	}
	require.NoError(f.t, f.follower.Tend(f.snapshot))
	return f.add()
}

// add is the snapshot that the test has made with what the tap reports in it.
func (f *fake) add() *model.Snapshot { return add(f.follower, &f.state, f.snapshot) }

// add is a copy of a snapshot with what the taps report in it, as it is made of the facts.
func add(f *clients.Follower, state **accounts.State, s *model.Snapshot) *model.Snapshot {
	v := &facts.View{
		Time: s.Time, Retained: s.Retired, Watchlist: &facts.Watchlist{Targets: s.Targets},
		Namespaces: []facts.Namespace{{Counted: true, Window: losses.Window{Interval: s.Interval}}},
	}
	for i := range s.Listeners {
		if l := &s.Listeners[i]; l.Listening() {
			v.Watchlist.Watched = append(v.Watchlist.Watched, facts.Watched{Listening: &facts.Listening{ID: l.ID, Members: []sockdiag.Listener{{Inode: l.Inode}}}})
		}
	}
	v.Watchlist.Index()
	f.Read()
	f.Count(v)
	out := *s
	out.Listeners, out.NetNS = slices.Clone(s.Listeners), slices.Clone(s.NetNS)
	*state = accounts.Add(*state, v.Clients, &out)
	for i := range out.Listeners {
		(*state).Judged(&out.Listeners[i], out.Time)
	}
	return &out
}

func listener(addr string) model.Listener {
	a := netip.MustParseAddrPort(addr)
	return model.Listener{
		ID: model.ListenerID{NetNS: netns, Address: a}, Port: a.Port(), Losses: &model.Losses{DroppedPackets: 12},
		Verdict: model.Verdict{Status: model.StatusLosing, Summary: "12 packets were dropped."},
	}
}

func down(port uint16) model.Listener {
	return model.Listener{ID: model.ListenerID{NetNS: netns}, Port: port, Expected: true, Losses: &model.Losses{}}
}

func endpoint(addr string, counts map[outcome.Outcome]uint64) outcome.Endpoint {
	e := outcome.Endpoint{Addr: netip.MustParseAddrPort(addr)}
	for o, n := range counts {
		e.Clients[o] = n
	}
	return e
}

// The tap reads all there is when clients may be turned away.
func TestAlert(t *testing.T) {
	queue := func(status model.Status, length, recent int) model.Listener {
		l := listener("0.0.0.0:8080")
		l.Verdict.Status, l.AcceptQueue = status, &model.AcceptQueue{Length: length, Recent: recent, Limit: 100}
		return l
	}
	other := queue(model.StatusLosing, 0, 0)
	other.ID.NetNS++
	for name, c := range map[string]struct {
		l     model.Listener
		alert bool
	}{
		"ok":                          {queue(model.StatusOK, 3, 50), false},
		"threads are short":           {queue(model.StatusSaturated, 0, 2), false},
		"and clients wait outside":    {queue(model.StatusSaturated, 1, 2), true},
		"the queue was half full":     {queue(model.StatusOK, 0, 51), true},
		"losing":                      {queue(model.StatusLosing, 0, 0), true},
		"down":                        {down(8080), true},
		"losing in another namespace": {other, false},
	} {
		f := &fake{t: t, now: time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)}
		f.follower = clients.NewFollower(clients.Auto, source{&f.snapshot}, func(w clients.Where) (clients.Tap, error) {
			if w.NetNS != netns {
				return nil, fs.ErrPermission
			}
			return f, nil
		})
		f.look(time.Minute, queue(model.StatusOK, 0, 0), c.l)
		require.Equal(t, c.alert, f.alerts > 0, name)
	}
}

// A client is the listener's that the kernel gives it to.
func TestClientsBelongToTheMostSpecificListener(t *testing.T) {
	f := newFake(t, clients.Auto)
	listeners := []model.Listener{listener("0.0.0.0:8080"), listener("10.0.0.1:8080"), listener("[::]:8080"), listener("[::]:9090")}
	f.look(time.Minute, listeners...)
	require.Equal(t, []uint16{8080, 9090}, f.ports)
	f.report.Endpoints = []outcome.Endpoint{
		endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 1}),
		endpoint("10.0.0.2:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 2}),
		endpoint("[fd00::1]:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 3}),
		endpoint("10.0.0.2:9090", map[outcome.Outcome]uint64{outcome.GaveUp: 4, outcome.Connected: 100}),
	}
	s := f.look(time.Minute, listeners...)
	for i, want := range []uint64{2, 1, 3, 4} {
		require.Equal(t, want, s.Listeners[i].Losses.Clients.Outcomes[model.ClientGaveUp], s.Listeners[i].ID.String())
		require.Equal(t, want, s.Listeners[i].Totals.Clients.Outcomes[model.ClientGaveUp])
	}
	require.EqualValues(t, 100, s.Listeners[3].Losses.Clients.Outcomes[model.ClientConnected])
	require.Nil(t, listeners[0].Losses.Clients, "what hangs on a snapshot is not changed")
	require.Equal(t, "In the last 0.8 s 4 clients gave up connecting. 12 packets were dropped.", diagnosis.AddClients(s.Listeners[3].Verdict, &s.Listeners[3], time.Minute).Summary)
}

// Of more addresses than are counted one by one, those of a port and family are one account. Who is bound to an address has
// one of his own, so that they met who listens on all of them, or nobody.
func TestClientsOfManyAddresses(t *testing.T) {
	f := newFake(t, clients.Auto)
	listeners := []model.Listener{listener("10.0.0.1:8080"), listener("0.0.0.0:8080"), listener("10.0.0.1:9090"), listener("[::]:7070")}
	f.look(time.Minute, listeners...)
	f.report.Endpoints = []outcome.Endpoint{
		endpoint("0.0.0.0:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 2}),
		endpoint("[::]:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 7}),
		endpoint("0.0.0.0:9090", map[outcome.Outcome]uint64{outcome.GaveUp: 3}),
		endpoint("0.0.0.0:7070", map[outcome.Outcome]uint64{outcome.GaveUp: 4}),
		endpoint("[::]:7070", map[outcome.Outcome]uint64{outcome.GaveUp: 5}),
	}
	s := f.look(time.Minute, listeners...)
	for i, want := range []uint64{0, 2, 0, 9} {
		require.Equal(t, want, s.Listeners[i].Losses.Clients.Outcomes[model.ClientGaveUp], s.Listeners[i].ID.String())
	}
}

// Two listeners that differ by their device only: who met which is not known.
func TestClientsOfOneAddressOnTwoDevices(t *testing.T) {
	f := newFake(t, clients.Auto)
	one, two, other := listener("0.0.0.0:8080"), listener("0.0.0.0:8080"), listener("0.0.0.0:9090")
	one.ID.Device, two.ID.Device = "eth0", "eth1"
	f.look(time.Minute, one, two, other)
	f.report.Endpoints = []outcome.Endpoint{
		endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 2}),
		endpoint("10.0.0.1:9090", map[outcome.Outcome]uint64{outcome.GaveUp: 3}),
	}
	s := f.look(time.Minute, one, two, other)
	for i := range 2 {
		require.Nil(t, s.Listeners[i].Losses.Clients)
		require.Nil(t, s.Listeners[i].Totals.Clients)
		require.Contains(t, s.Unavailable[i].Why, "another device")
	}
	require.Len(t, s.Unavailable, 2)
	require.EqualValues(t, 3, s.Listeners[2].Losses.Clients.Outcomes[model.ClientGaveUp])
}

// SYNs that were dropped and belong to nobody who was seen.
func TestUnseen(t *testing.T) {
	f := newFake(t, clients.Auto)
	l := listener("0.0.0.0:8080")
	l.Losses.By = []model.Drops{{DropKey: model.DropKey{Packet: model.PacketACK}, Packets: 7}, {DropKey: model.DropKey{Packet: model.PacketSYN}, Packets: 5}}
	look := func() []model.Unavailable { return f.look(time.Minute, l).Unavailable }
	f.look(time.Minute, l)
	require.Empty(t, look(), "they may not have been read yet")
	unseen := append(look(), look()...)
	require.Len(t, unseen, 1)
	require.Equal(t, "clients by outcome: those of 0.0.0.0:8080", unseen[0].What)
	require.Contains(t, unseen[0].Why, "5 SYNs of them were dropped and no handshake was seen")
	f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 2})}
	require.Empty(t, look())
}

// Packets that could not be read are of the interval, too, and make the numbers uncertain.
func TestPacketsLost(t *testing.T) {
	f := newFake(t, clients.Auto)
	var s *model.Snapshot
	for n := range uint64(10) {
		f.report.Lost = n * 10
		f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: n})}
		s = f.look(3*time.Second, listener("[::]:8080"))
	}
	require.EqualValues(t, 30, s.Listeners[0].Losses.Clients.PacketsLost)
	require.Contains(t, diagnosis.AddClients(s.Listeners[0].Verdict, &s.Listeners[0], 3*time.Second).Summary, "3 clients gave up connecting (up to 30 more or fewer: 30 packets could not be read); ")
}

// Losses are those of the interval, totals those since the start.
func TestInterval(t *testing.T) {
	f := newFake(t, clients.Auto)
	var s *model.Snapshot
	for n := range uint64(10) {
		f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: n * 10})}
		s = f.look(3*time.Second, listener("[::]:8080"))
	}
	require.EqualValues(t, 30, s.Listeners[0].Losses.Clients.Outcomes[model.ClientGaveUp])
	require.EqualValues(t, 90, s.Listeners[0].Totals.Clients.Outcomes[model.ClientGaveUp])
	require.Equal(t, 3*time.Second, s.Listeners[0].Losses.Clients.Observed)
	require.Equal(t, 1, f.opened)
}

// A client that turned out to have waited is no longer among the stalled or the unanswered. Totals do not fall: the next ones
// make up for it.
func TestCorrected(t *testing.T) {
	f := newFake(t, clients.Auto)
	look := func(stalled, delayed, unanswered, answered uint64) *model.ClientTotals {
		e := endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.Stalled: stalled, outcome.Delayed: delayed})
		e.Answers.Unanswered, e.Answers.Answered = unanswered, answered
		f.report.Endpoints = []outcome.Endpoint{e}
		l := listener("[::]:8080")
		l.Connector = &model.Connector{Protocol: "http/1.1"}
		return f.look(time.Minute, l).Listeners[0].Totals.Clients
	}
	look(3, 0, 2, 0)
	after := look(1, 2, 1, 3)
	require.EqualValues(t, 3, after.Outcomes[model.ClientStalled])
	require.EqualValues(t, 2, after.Outcomes[model.ClientDelayed])
	require.EqualValues(t, 2, after.Answers.Unanswered)
	require.EqualValues(t, 3, after.Answers.Answered)
	look(2, 2, 1, 3)
	after = look(5, 2, 4, 3)
	require.EqualValues(t, 5, after.Outcomes[model.ClientStalled])
	require.EqualValues(t, 4, after.Answers.Unanswered)
}

// How long the delayed waited is of the interval, too.
func TestWaits(t *testing.T) {
	f := newFake(t, clients.Auto)
	e := endpoint("10.0.0.1:8080", nil)
	look := func(shortest, longest time.Duration) model.Waits {
		if longest > 0 {
			e.Clients[outcome.Delayed]++
			e.Delays.Count++
		}
		e.Delays.Shortest, e.Delays.Longest = shortest, longest
		f.report.Endpoints = []outcome.Endpoint{e}
		return f.look(3*time.Second, listener("[::]:8080")).Listeners[0].Losses.Clients.Waits
	}
	require.Zero(t, look(0, 0))
	require.Equal(t, model.Waits{Shortest: 1, Longest: 7}, look(1, 7))
	require.Equal(t, model.Waits{Shortest: 1, Longest: 7}, look(2, 3))
	require.Equal(t, model.Waits{Shortest: 1, Longest: 9}, look(5, 9))
	require.Equal(t, model.Waits{Shortest: 2, Longest: 9}, look(6, 6), "three seconds ago")
	require.Equal(t, model.Waits{Shortest: 5, Longest: 9}, look(0, 0))
}

// Refused clients met no listener: they are the port's, whatever listens later.
func TestRefused(t *testing.T) {
	f := newFake(t, clients.Auto)
	f.look(time.Minute, down(8080))
	f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.Refused: 7})}
	s := f.look(time.Minute, down(8080))
	require.EqualValues(t, 7, s.Listeners[0].Losses.Clients.Outcomes[model.ClientRefused])
	require.EqualValues(t, 7, *s.Targets[0].Refused)

	f.report.Endpoints[0].Clients[outcome.Connected] = 5
	s = f.look(time.Minute, listener("[::]:8080"))
	require.Equal(t, [model.NumClientOutcomes]uint64{model.ClientConnected: 5, model.ClientRefused: 7}, s.Listeners[0].Losses.Clients.Outcomes)
	require.Zero(t, s.Listeners[0].Totals.Clients.Outcomes[model.ClientRefused])
	require.EqualValues(t, 7, *s.Targets[0].Refused)
}

// Clients that are decided when the listener has closed are still its clients.
func TestDecidedAfterTheListenerClosed(t *testing.T) {
	f := newFake(t, clients.Auto)
	f.look(time.Minute, listener("[::]:8080"))
	f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.Reset: 4, outcome.Refused: 3})}
	f.gone = append(f.gone, model.RetainedTotals{ID: listener("[::]:8080").ID})
	f.look(time.Minute, down(8080))
	s := f.look(time.Minute, listener("[::]:8080"))
	require.EqualValues(t, 4, s.Listeners[0].Totals.Clients.Outcomes[model.ClientReset])
	require.EqualValues(t, 4, s.Listeners[0].Totals.Clients.Begun, "who was refused is none of its")
	require.EqualValues(t, 3, *s.Targets[0].Refused)
}

// Who is refused is none of a listener's clients, whatever listens when it is reported, and is decided.
func TestRefusedAreNoClientsOfAListener(t *testing.T) {
	up := listener("[::]:8080")
	counted := func(refused, waiting, open int) []outcome.Endpoint {
		e := endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.Connected: 2, outcome.Refused: uint64(refused)})
		e.Waiting, e.Settling, e.Refused = waiting, open, open
		return []outcome.Endpoint{e}
	}
	type look struct {
		endpoints []outcome.Endpoint
		l         model.Listener
	}
	for name, c := range map[string]struct {
		looks []look
		begun uint64 // of the listener
	}{
		"by a rule, while it listens":            {[]look{{counted(4, 0, 0), up}}, 2},
		"while it restarts":                      {[]look{{counted(1, 0, 0), up}, {counted(4, 0, 0), up}}, 2},
		"when it has closed":                     {[]look{{counted(4, 0, 0), down(8080)}}, 2},
		"when it has closed, decided afterwards": {[]look{{counted(0, 0, 4), down(8080)}, {counted(4, 0, 0), down(8080)}}, 2},
		"in a restart, decided afterwards":       {[]look{{counted(0, 0, 4), down(8080)}, {counted(4, 0, 0), up}}, 2},
		"who waited for it when it closed":       {[]look{{counted(0, 4, 0), up}, {counted(0, 0, 4), down(8080)}, {counted(4, 0, 0), down(8080)}}, 6},
		"who waited, and others, in a restart":   {[]look{{counted(0, 2, 0), up}, {counted(2, 0, 2), down(8080)}, {counted(4, 0, 0), up}}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, clients.Auto)
			f.report.Endpoints = counted(0, 0, 0)
			f.look(time.Minute, up)
			f.gone = []model.RetainedTotals{{ID: up.ID}}
			for _, look := range c.looks {
				f.report.Endpoints = look.endpoints
				f.look(time.Minute, look.l)
			}
			s := f.look(time.Minute, up)
			total := s.Listeners[0].Totals.Clients
			require.EqualValues(t, 4, *s.Targets[0].Refused)
			require.EqualValues(t, c.begun, total.Begun)
			require.Zero(t, total.Open())
		})
	}
}

// Where nothing listens who is refused has begun at the port, and once.
func TestRefusedBeganAtThePort(t *testing.T) {
	f := newFake(t, clients.Auto)
	f.look(time.Minute, down(8080))
	for _, waiting := range []int{4, 0} {
		e := endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.Refused: uint64(7 - waiting)})
		e.Waiting = waiting
		f.report.Endpoints = []outcome.Endpoint{e}
		c := f.look(time.Minute, down(8080)).Listeners[0].Losses.Clients
		require.EqualValues(t, 7, c.Begun)
		require.EqualValues(t, waiting, c.Open())
	}
}

// The totals of a listener that restarts continue.
func TestTotalsSurviveARestart(t *testing.T) {
	f := newFake(t, clients.Auto)
	f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.Stalled: 3})}
	f.look(time.Minute, listener("[::]:8080"))
	f.now = f.now.Add(time.Second)
	f.snapshot = &model.Snapshot{
		Time: f.now, Interval: time.Minute, Listeners: []model.Listener{down(8080)},
		Retired: []model.RetainedTotals{{ID: listener("[::]:8080").ID}},
	}
	require.NoError(t, f.follower.Tend(f.snapshot))
	require.EqualValues(t, 3, f.add().Retired[0].Totals.Clients.Outcomes[model.ClientStalled])
	s := f.look(time.Minute, listener("[::]:8080"))
	require.EqualValues(t, 3, s.Listeners[0].Totals.Clients.Outcomes[model.ClientStalled])
}

func TestWithoutTheRight(t *testing.T) {
	f := newFake(t, clients.Auto)
	f.refuses = fs.ErrPermission
	for range 3 {
		s := f.look(time.Minute, listener("[::]:8080"))
		require.Nil(t, s.Listeners[0].Losses.Clients)
		require.Nil(t, s.Listeners[0].Totals.Clients)
		require.Nil(t, s.Targets[0].Refused)
		require.Len(t, s.Unavailable, 1)
		require.Contains(t, s.Unavailable[0].Why, "CAP_NET_RAW")
	}
	require.Equal(t, 1, f.opened, "it is not tried every second")

	f = newFake(t, clients.On)
	f.refuses = fs.ErrPermission
	f.snapshot = &model.Snapshot{Targets: []model.Target{{Port: 8080, NetNS: netns}}, NetNS: []model.NetNS{{ID: netns, Sysctl: map[string]int{"tcp_synack_retries": 4}}}}
	err := f.follower.Tend(f.snapshot)
	require.ErrorIs(t, err, clients.ErrUnavailable)
	require.True(t, errors.Is(err, fs.ErrPermission))
}

func TestOffChangesNothing(t *testing.T) {
	f := newFake(t, clients.Off)
	s := f.look(time.Minute, listener("[::]:8080"))
	require.Equal(t, f.snapshot, s)
	require.Zero(t, f.opened)
}

// A namespace that does not answer once has neither listeners nor targets: its totals are kept, and it is followed.
func TestNamespaceThatIsSilentOnce(t *testing.T) {
	f := newFake(t, clients.Auto)
	f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.Stalled: 3})}
	f.look(time.Minute, listener("[::]:8080"))
	f.snapshot = &model.Snapshot{
		Time: f.now, NetNS: f.snapshot.NetNS, Retired: []model.RetainedTotals{{ID: listener("[::]:8080").ID}},
	}
	require.NoError(t, f.follower.Tend(f.snapshot))
	f.add()
	s := f.look(time.Minute, listener("[::]:8080"))
	require.EqualValues(t, 3, s.Listeners[0].Totals.Clients.Outcomes[model.ClientStalled])
	require.Zero(t, f.closed)
	require.Equal(t, 1, f.opened)
}

// A namespace that is no longer watched is left.
func TestNamespaceEnds(t *testing.T) {
	f := newFake(t, clients.Auto)
	f.look(time.Minute, listener("[::]:8080"))
	f.snapshot = &model.Snapshot{}
	require.NoError(t, f.follower.Tend(f.snapshot))
	require.Equal(t, 1, f.closed)
	f.look(time.Minute, listener("[::]:8080"))
	require.Equal(t, 2, f.opened)
	require.NoError(t, f.follower.Close())
	require.Equal(t, 2, f.closed)
}

func TestModeIsAFlag(t *testing.T) {
	var m clients.Mode
	require.NoError(t, m.Set("on"))
	require.Equal(t, clients.On, m)
	require.Error(t, m.Set("yes"))
	require.Equal(t, "mode", m.Type())
}

// The two lists of outcomes are one.
func TestOutcomesAreTheSame(t *testing.T) {
	require.EqualValues(t, outcome.NumOutcomes, model.NumClientOutcomes)
	for o := range outcome.NumOutcomes {
		require.Equal(t, o.String(), model.ClientOutcome(o).String())
	}
	require.Len(t, outcome.DelayBounds(), model.NumDelayBuckets)
}

// Where there are more namespaces than taps it is said.
func TestMoreNamespacesThanTaps(t *testing.T) {
	const namespaces = 70
	opened := 0
	s := &model.Snapshot{Time: time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)}
	for n := range uint64(namespaces) {
		l := listener("[::]:8080")
		l.ID.NetNS = n + 1
		s.Listeners = append(s.Listeners, l)
	}
	f := clients.NewFollower(clients.Auto, source{&s}, func(w clients.Where) (clients.Tap, error) {
		require.True(t, w.Many)
		opened++
		return &fake{}, nil
	})
	require.NoError(t, f.Tend(s))
	require.Equal(t, 64, opened)
	var state *accounts.State
	got := add(f, &state, s)
	require.Len(t, got.Unavailable, 1)
	require.Equal(t, "clients by outcome: handshakes of 6 network namespaces", got.Unavailable[0].What)
	require.Nil(t, got.Listeners[69].Totals.Clients)
}

// press publishes snapshots.
type press struct {
	mu     sync.Mutex
	latest *model.Snapshot
	next   chan struct{}
}

func (s *press) Snapshot() *model.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

func (s *press) Next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

func (s *press) publish(snap *model.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.next)
	s.latest, s.next = snap, make(chan struct{})
}

// Each snapshot is followed when it is published.
func TestRunFollowsWhatIsPublished(t *testing.T) {
	s := &press{next: make(chan struct{})}
	var opened atomic.Int64
	f := clients.NewFollower(clients.Auto, s, func(clients.Where) (clients.Tap, error) {
		opened.Add(1)
		return &fake{}, nil
	})
	defer f.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	for i := range 3 {
		s.publish(&model.Snapshot{Targets: []model.Target{{Port: 8080, NetNS: uint64(i + 1)}}})
		require.Eventually(t, func() bool { return opened.Load() == int64(i+1) }, time.Minute, time.Millisecond)
	}
	stop()
	require.NoError(t, <-ended)
}

// However many addresses a stranger listens on, one after the other, nothing is kept of those that
// the snapshots no longer have.
func TestAccountsByChurn(t *testing.T) {
	f := newFake(t, clients.Auto)
	honest := listener("10.0.0.1:8080")
	counted := endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.Connected: 1})
	for i := range 20_000 {
		addr := fmt.Sprintf("127.%d.%d.%d:%d", 1+i>>16, i>>8&255, i&255, 1024+i%30_000)
		e := endpoint(addr, map[outcome.Outcome]uint64{outcome.Connected: 1})
		e.Ended = true
		counted.Clients[outcome.Connected]++
		f.report.Endpoints = []outcome.Endpoint{counted, e}
		f.look(time.Minute, honest, listener(addr))
	}
	s := f.look(time.Minute, honest)
	require.EqualValues(t, 20_001, s.Listeners[0].Totals.Clients.Outcomes[model.ClientConnected])
	require.LessOrEqual(t, f.follower.Remembered(), 5)
}

// Where no listener's process may be read, the namespace is entered by the process by which it was found.
func TestEntersByTheProcessThatIsKnown(t *testing.T) {
	for _, c := range []struct {
		found, process int
		want           []int
	}{{7, 0, []int{7}}, {7, 9, []int{9, 7}}, {0, 9, []int{9}}, {9, 9, []int{9}}} {
		l := listener("[::]:8080")
		if c.process != 0 {
			l.Process = &model.Process{PID: c.process}
		}
		snapshot := &model.Snapshot{Listeners: []model.Listener{l}, NetNS: []model.NetNS{{ID: netns, PID: c.found}}}
		var by []int
		f := clients.NewFollower(clients.Auto, source{&snapshot}, func(w clients.Where) (clients.Tap, error) {
			by = w.PIDs
			return nil, fs.ErrPermission
		})
		require.NoError(t, f.Tend(snapshot))
		require.Equal(t, c.want, by)
	}
}

// Who was refused before a server listened again was refused by nobody who stands in front of it.
func TestRefusedBeforeARestart(t *testing.T) {
	f := newFake(t, clients.On)
	refuse := func(n uint64) {
		f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.Refused: n})}
	}
	before, after := listener("0.0.0.0:8080"), listener("0.0.0.0:8080")
	before.Inode, after.Inode = 1, 2
	look := func(l model.Listener) *model.Clients {
		return f.look(time.Minute, l).Listeners[0].Losses.Clients
	}
	look(before)
	refuse(3)
	require.False(t, look(before).RefusedBefore, "it has listened all the time")
	refuse(7)
	look(down(8080))
	require.True(t, look(after).RefusedBefore)
	look(after)
	require.True(t, look(after).RefusedBefore)
	refuse(8)
	require.False(t, look(after).RefusedBefore, "one was refused since")
}
