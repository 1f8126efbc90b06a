package assemble

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// A port that is down has the process that listened there, and since when it is down, for as
// long as it is expected.
func TestWhoListenedBefore(t *testing.T) {
	at := time.Date(2026, 3, 1, 3, 12, 0, 0, time.UTC)
	list := func(up bool, targets ...model.Target) *facts.Watchlist {
		w := &facts.Watchlist{At: at, Targets: targets}
		if up {
			w.Watched = []facts.Watched{{Expected: true, Listening: &facts.Listening{
				ID: model.ListenerID{NetNS: 1, Address: netip.MustParseAddrPort("127.0.0.1:8080")}, Members: []sockdiag.Listener{{Inode: 7}},
			}}}
		}
		return w
	}
	target := model.Target{Port: 8080, NetNS: 1}
	up := target
	up.Up = true
	state, s := Snapshot(nil, &facts.View{Time: at, Watchlist: list(true, up)}, Options{})
	require.Len(t, s.Listeners, 1)
	require.Nil(t, s.Listeners[0].Last)
	at = at.Add(5 * time.Second)
	state, s = Snapshot(state, &facts.View{Time: at, Watchlist: list(false, target)}, Options{})
	require.Len(t, s.Listeners, 1)
	last := s.Listeners[0].Last
	require.NotNil(t, last)
	require.Equal(t, "127.0.0.1:8080", last.Address)
	require.Equal(t, 5*time.Second, last.Ago)
	require.Contains(t, s.Listeners[0].Verdict.Answer.Why, "Nothing has listened on port 8080 since 03:12:00 UTC. Before, a listener did, on 127.0.0.1:8080.")
	state, _ = Snapshot(state, &facts.View{Time: at, Watchlist: list(false)}, Options{})
	require.Empty(t, state.last, "of a port that nobody asks for any more")
}

// A port that nobody asked for is missed when clients are refused there, and not before.
func TestMissed(t *testing.T) {
	at := time.Date(2026, 3, 1, 3, 12, 0, 0, time.UTC)
	missed := func() *draft {
		target := model.Target{Port: 8080, NetNS: 1, Unasked: true}
		f := &facts.View{Time: at, Watchlist: &facts.Watchlist{At: at, Targets: []model.Target{target}}, Namespaces: []facts.Namespace{{ID: 1, Counted: true, Down: map[uint16]*model.Losses{8080: {}}}}}
		return compose(&State{last: map[expected]model.LastListener{{1, 8080}: {PID: 42, Comm: "java", Seen: at.Add(-2 * time.Second)}}}, f, Options{})
	}
	d := missed()
	d.judge()
	require.Empty(t, d.Listeners)

	d = missed()
	d.Listeners[0].Losses.Clients = &model.Clients{}
	d.Listeners[0].Losses.Clients.Outcomes[model.ClientRefused] = 5
	d.judge()
	require.Len(t, d.Listeners, 1)
	require.Equal(t, model.StatusDown, d.Listeners[0].Verdict.Status)
	require.Equal(t, model.CauseNoListener, d.Listeners[0].Verdict.Cause)
}

// One client that is refused may be a scanner of ports, and does not miss a server that was stopped; who keeps asking does.
func TestOneStrangerMissesNobody(t *testing.T) {
	start := time.Date(2026, 3, 1, 3, 12, 0, 0, time.UTC)
	type look struct {
		after         time.Duration
		total, lately uint64 // refused at the port: ever, and within the interval
		down          bool
	}
	const s, m = time.Second, time.Minute
	for name, looks := range map[string][]look{
		"a scanner once":               {{0, 7, 0, false}, {s, 8, 1, false}, {20 * s, 8, 0, false}},
		"a scanner every ten minutes":  {{0, 0, 0, false}, {10 * m, 1, 1, false}, {20 * m, 2, 1, false}, {30 * m, 3, 1, false}, {40 * m, 4, 1, false}},
		"a check every twenty seconds": {{0, 0, 0, false}, {20 * s, 1, 1, false}, {40 * s, 2, 1, false}, {60 * s, 3, 1, true}, {65 * s, 3, 1, true}, {75 * s, 3, 0, false}, {80 * s, 4, 1, true}},
		"three at once":                {{0, 9, 0, false}, {s, 12, 3, true}, {20 * s, 12, 0, false}},
		"two when it is looked first":  {{0, 9, 2, false}, {s, 10, 3, true}},
		"its count began again":        {{0, 9, 0, false}, {s, 1, 1, false}, {2 * s, 3, 2, true}},
	} {
		var state *State
		for _, l := range looks {
			target := model.Target{Port: 8080, NetNS: 1, Unasked: true}
			f := &facts.View{Time: start.Add(l.after), Watchlist: &facts.Watchlist{At: start, Targets: []model.Target{target}}, Namespaces: []facts.Namespace{{ID: 1, Counted: true, Down: map[uint16]*model.Losses{8080: {}}}}}
			d := compose(state, f, Options{})
			target.Refused = &l.total
			d.Targets = []model.Target{target}
			d.Listeners[0].Losses.Clients = &model.Clients{}
			d.Listeners[0].Losses.Clients.Outcomes[model.ClientRefused] = l.lately
			d.judge()
			require.Len(t, d.Listeners, map[bool]int{true: 1}[l.down], "%s, after %v", name, l.after)
			state = d.next
		}
	}
}

// Whoever has connections of a port that is down is its server only if it was seen to listen there, or nobody was.
func TestWhoDrains(t *testing.T) {
	at := time.Date(2026, 3, 1, 3, 12, 0, 0, time.UTC)
	target := model.Target{Port: 8080, NetNS: 1, Draining: &model.OtherProcess{PID: 42, Comm: "java", Connections: 3}}
	for pid, said := range map[int]bool{0: true, 42: true, 43: false} {
		before := &State{last: map[expected]model.LastListener{{1, 8080}: {PID: pid, Seen: at}}}
		_, s := Snapshot(before, &facts.View{Time: at, Watchlist: &facts.Watchlist{At: at, Targets: []model.Target{target}}}, Options{})
		require.Equal(t, said, s.Listeners[0].Draining != nil, pid)
	}
	_, s := Snapshot(nil, &facts.View{Time: at, Watchlist: &facts.Watchlist{At: at, Targets: []model.Target{target}}}, Options{})
	require.Equal(t, "The listener on port 8080 is closed, and java 42 still has 3 connections that came through it, as in a graceful shutdown: new clients are refused.", s.Listeners[0].Verdict.Summary)
}
