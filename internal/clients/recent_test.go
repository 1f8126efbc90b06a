package clients_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/handshake"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Clients are decided some time after their packets were dropped, and are counted from
// when the trouble began.
func TestTurnedAwayInTheTrouble(t *testing.T) {
	f := newFake(t, clients.Auto)
	gaveUp := func(n uint64) {
		f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: n})}
	}
	trouble := func(began, latest time.Time) *uint64 {
		l := listener("[::]:8080")
		l.Recent = &model.Recent{Began: began, Latest: latest, Packets: 100}
		s := f.look(time.Minute, l)
		return s.Listeners[0].Recent.ClientsTurnedAway
	}
	f.look(time.Minute, listener("[::]:8080"))
	gaveUp(3) // before
	f.look(time.Minute, listener("[::]:8080"))
	f.now = f.now.Add(model.RecentFor)
	f.look(time.Minute, listener("[::]:8080"))
	first := f.now.Add(time.Millisecond)
	require.Zero(t, *trouble(first, first))
	gaveUp(43)
	require.EqualValues(t, 40, *trouble(first, first))
	f.now = f.now.Add(model.RecentFor)
	second := f.now.Add(time.Millisecond)
	require.EqualValues(t, 40, *trouble(first, second))
	gaveUp(50)
	require.EqualValues(t, 47, *trouble(first, second))
	require.EqualValues(t, 7, *trouble(second, second), "the first ended too long ago")
	require.Nil(t, trouble(second.Add(-time.Hour), second), "it began before the handshakes were followed")
	require.EqualValues(t, 7, *f.look(time.Minute, listener("[::]:8080")).Listeners[0].Recent.ClientsTurnedAway, "by what was decided")
}

// A trouble begins with who is turned away first, be it before the first packet is dropped: their number never goes back.
func TestTurnedAwayBeforeTheFirstDrop(t *testing.T) {
	f := newFake(t, clients.Auto)
	recent := func(gaveUp uint64, r *model.Recent) *model.Recent {
		f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: gaveUp})}
		l := listener("[::]:8080")
		l.Recent = r
		return f.look(time.Minute, l).Listeners[0].Recent
	}
	recent(7, nil)
	f.now = f.now.Add(model.RecentFor)
	recent(7, nil)
	began := recent(307, nil).Began
	require.Equal(t, f.now, began)
	f.now = f.now.Add(5 * time.Minute)
	require.EqualValues(t, 500, *recent(507, nil).ClientsTurnedAway)
	drops := f.now.Add(time.Millisecond)
	dropped := &model.Recent{Began: drops, Latest: drops, Ended: drops, Packets: 100, Cause: model.CauseMaxThreads}
	r := recent(507, dropped)
	require.EqualValues(t, 500, *r.ClientsTurnedAway)
	require.Equal(t, began, r.Began)
	require.Equal(t, drops, r.Ended)
	require.EqualValues(t, 100, r.Packets)
	require.Equal(t, drops, dropped.Began, "it is somebody else's")
	f.now = f.now.Add(10 * time.Minute)
	require.EqualValues(t, 502, *recent(509, dropped).ClientsTurnedAway)
	f.now = f.now.Add(10 * time.Minute)
	require.EqualValues(t, 502, *recent(509, nil).ClientsTurnedAway, "no packet was dropped for a quarter of an hour")
	f.now = f.now.Add(10 * time.Minute)
	drops = f.now.Add(time.Millisecond)
	require.Zero(t, *recent(509, &model.Recent{Began: drops, Latest: drops, Ended: drops, Packets: 1}).ClientsTurnedAway, "another one")
}

// What is lost lately has the clients of that time.
func TestClientsOfTheLastSeconds(t *testing.T) {
	f := newFake(t, clients.Auto)
	look := func() *model.Listener {
		l := listener("[::]:8080")
		l.Lately = &model.Lately{Span: 2 * time.Second}
		return &f.look(time.Minute, l).Listeners[0]
	}
	look()
	f.report.Endpoints = []outcome.Endpoint{endpoint(netip.MustParseAddrPort("10.0.0.1:8080").String(), map[outcome.Outcome]uint64{outcome.GaveUp: 5})}
	for second := range 5 {
		l := look()
		require.EqualValues(t, 5, l.Losses.Clients.TurnedAway())
		want := 0
		if second < 2 {
			want = 5
		}
		require.EqualValues(t, want, l.Lately.Losses.Clients.TurnedAway(), "second %d", second)
	}
}

// What the tap lost before a listener was there is not the listener's: what it has lost since is.
func TestPacketsLostBeforeTheListener(t *testing.T) {
	f := newFake(t, clients.Auto)
	lost := func(all uint64, l model.Listener) uint64 {
		f.report.Lost = all
		return f.look(time.Minute, l).Listeners[0].Losses.Clients.PacketsLost
	}
	require.EqualValues(t, 5, lost(5, listener("10.0.0.1:8080")), "it was there when they were lost")
	require.EqualValues(t, 100_000, lost(100_000, listener("10.0.0.1:8080")))
	f.now = f.now.Add(time.Hour)
	lost(100_000, listener("10.0.0.1:8080"))
	require.Zero(t, lost(100_000, listener("10.0.0.2:8080")))
	require.EqualValues(t, 7, lost(100_007, listener("10.0.0.2:8080")))
	require.EqualValues(t, 10, lost(100_010, listener("10.0.0.2:8080")))
	f.now = f.now.Add(time.Minute)
	require.EqualValues(t, 10, lost(100_020, listener("10.0.0.2:8080")))
}

// Who was let in and got no answer was turned away without a packet that was dropped.
func TestTurnedAwayWithoutADrop(t *testing.T) {
	f := newFake(t, clients.Auto)
	look := func() *model.Recent {
		l := listener("[::]:8080")
		l.Verdict = model.Verdict{Status: model.StatusSaturated, Cause: model.CauseMaxThreads}
		return f.look(time.Minute, l).Listeners[0].Recent
	}
	require.Nil(t, look())
	e := endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 25})
	e.Proxies = []outcome.Source{{Clients: 20}}
	f.report.Endpoints = []outcome.Endpoint{e}
	r := look()
	require.False(t, r.Over)
	f.report.Endpoints[0].Proxies = nil // nobody has come for long
	require.EqualValues(t, 25, *r.ClientsTurnedAway)
	ended := f.now
	for range 10 {
		r = look()
	}
	require.True(t, r.Over)
	require.Equal(t, ended, r.Ended)
	require.Equal(t, 1, r.Proxies)
	require.Equal(t, model.CauseMaxThreads, r.Cause)
	require.Zero(t, r.Packets)
	f.now = f.now.Add(15 * time.Minute)
	require.Nil(t, look())
}

// Packets of clients that have left make nobody losing: where the handshakes are followed
// it is known that nobody is there.
func TestRepeatedPacketsOfThoseWhoLeft(t *testing.T) {
	f := newFake(t, clients.Auto)
	f.look(time.Minute, listener("[::]:8080"))
	began := f.now.Add(time.Millisecond)
	look := func() *model.Listener {
		l := listener("[::]:8080")
		l.Lately = &model.Lately{Span: 2 * time.Second, Losses: model.Losses{DroppedPackets: 12}}
		l.Recent = &model.Recent{Began: began, Latest: began, Ended: f.now, Packets: 100}
		return &f.look(time.Minute, l).Listeners[0]
	}
	for range 3 {
		require.EqualValues(t, 12, look().Lately.Losses.DroppedPackets, "no client was seen: they may be counted elsewhere")
	}
	f.report.Endpoints = []outcome.Endpoint{endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 5})}
	left := f.now.Add(time.Second)
	for second := range 5 {
		l := look()
		if second < 2 {
			require.EqualValues(t, 12, l.Lately.Losses.DroppedPackets, "second %d", second)
			continue
		}
		require.Zero(t, l.Lately.Losses.DroppedPackets)
		require.True(t, l.Recent.Over)
		require.Equal(t, left, l.Recent.Ended)
		require.EqualValues(t, 5, *l.Recent.ClientsTurnedAway)
		require.EqualValues(t, 12, l.Losses.DroppedPackets, "they were dropped all the same")
	}
	f.report.Endpoints[0].Waiting = 1
	require.EqualValues(t, 12, look().Lately.Losses.DroppedPackets, "somebody is there")
}

// What clients repeat that have left makes nobody losing again, nor does who is known late to
// have had no answer: be it that others come and are let in. A client that has begun since, and
// is in trouble, does.
func TestQuietUntilSomebodyNew(t *testing.T) {
	f := newFake(t, clients.Auto)
	f.look(time.Minute, listener("[::]:8080"))
	began := f.now.Add(time.Millisecond)
	packets := uint64(0)
	e := endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 5})
	troubled := began // the youngest that was in trouble began
	look := func() *model.Listener {
		e.Troubled = f.now.Sub(troubled) + time.Second
		f.report.Endpoints = []outcome.Endpoint{e}
		l := listener("[::]:8080")
		l.Lately = &model.Lately{Span: 2 * time.Second, Losses: model.Losses{DroppedPackets: packets}}
		l.Recent = &model.Recent{Began: began, Latest: began, Ended: f.now, Packets: 100}
		return &f.look(time.Minute, l).Listeners[0]
	}
	losing := func(l *model.Listener) bool {
		c := l.Lately.Losses.Clients
		return l.Lately.Losses.DroppedPackets > 0 || c.TurnedAway() > 0
	}
	packets = 12
	require.True(t, losing(look()))
	packets = 0
	for losing(look()) {
	}
	ended := look().Recent.Ended

	packets = 3
	for second := range 30 { // it is asked for its health meanwhile, and dead connections are let in
		e.Clients[outcome.Connected]++
		e.Clients[outcome.Stalled]++
		e.LetInLate++
		e.Settling, e.Stalling = second%2, 3
		l := look()
		require.False(t, losing(l), "second %d", second)
		require.True(t, l.Recent.Over)
		require.Equal(t, ended, l.Recent.Ended)
	}
	require.EqualValues(t, 35, *look().Recent.ClientsTurnedAway, "they are counted all the same")

	troubled = f.now
	require.True(t, losing(look()), "a new one's packet was repeated")
	packets = 0
	for losing(look()) {
	}
	packets, e.Waiting = 1, 1
	require.True(t, losing(look()), "somebody waits for a SYN-ACK")
}

// A report is as of a quarter of a second ago while no packets come: a client seems to have begun later by that than the
// packet of it which was dropped.
func TestBeganNotAfterItsOwnDrop(t *testing.T) {
	f := newFake(t, clients.Auto)
	f.look(time.Minute, listener("[::]:8080"))
	began := f.now.Add(time.Millisecond)
	e := endpoint("10.0.0.1:8080", map[outcome.Outcome]uint64{outcome.GaveUp: 5})
	look := func() *model.Listener {
		e.Troubled = f.now.Add(time.Second).Sub(began) - handshake.Lag
		f.report.Endpoints = []outcome.Endpoint{e}
		l := listener("[::]:8080")
		l.Lately = &model.Lately{Span: 2 * time.Second, Losses: model.Losses{DroppedPackets: 3}}
		l.Recent = &model.Recent{Began: began, Latest: began, Ended: began.Add(time.Millisecond), Packets: 100}
		return &f.look(time.Minute, l).Listeners[0]
	}
	for range 3 {
		require.False(t, look().Losses.Clients.AfterDrops)
	}
	began = began.Add(3 * time.Second)
	e.Troubled = f.now.Add(time.Second).Sub(began)
	f.report.Endpoints = []outcome.Endpoint{e}
	l := listener("[::]:8080")
	l.Recent = &model.Recent{Began: began, Latest: began, Ended: began.Add(-time.Second), Packets: 100}
	require.True(t, f.look(time.Minute, l).Listeners[0].Losses.Clients.AfterDrops)
}
