package incident

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A server is overloaded for a minute and stops; it comes back for some seconds with the totals that were kept for
// it, and stops again: the incident is the overload's, and what was counted before the stop is still its own.
func TestOverloadThatEndsInAStop(t *testing.T) {
	d, tracker := newDirect(t, t.TempDir(), someLimits())
	v, refused := newLife(1), uint64(3)
	next := func(kind trouble) {
		s := v.next(kind)
		if kind == closed {
			refused++
		} else {
			c := &model.ClientTotals{Begun: v.total}
			c.Outcomes[model.ClientGaveUp] = v.total
			s.Listeners[0].Totals.Clients = c
		}
		s.Targets = []model.Target{{Port: 8080, NetNS: 7, Up: kind != closed, Refused: new(refused)}}
		tracker.record(s, d)
	}
	for _, part := range []struct {
		kind trouble
		n    int
	}{{calm, 5}, {connectionsFull, 60}, {closed, 5}, {connectionsFull, 5}, {closed, 70}, {calm, 70}} {
		for range part.n {
			next(part.kind)
		}
	}
	require.Empty(t, tracker.cases)
	list := d.shelf.list()
	require.Len(t, list, 1)
	require.Equal(t, model.CauseMaxConnections, list[0].Cause)
	story := d.story(t, list[0].ID)
	require.Equal(t, v.total, story.Counted.Packets())
	require.Equal(t, v.total, story.Counted.Clients.Outcomes[model.ClientGaveUp])
	require.Equal(t, uint64(75), story.Counted.Clients.Outcomes[model.ClientRefused])
	require.Equal(t, model.StatusDown, story.Summary.Status)
	require.Equal(t, model.StatusLosing, story.Worst.Listener.Verdict.Status, "the worst of the cause, with its settings")
	require.Contains(t, story.Answer().Why, "connections")
	require.Regexp(t, `\nFrom \d\d:\d\d:\d\d nothing listened\.`, "\n"+strings.Join(story.Happened(), "\n"))
}

// What a listener counted before it closed is no part of the incident that begins while nothing listens.
func TestCountedBeforeItClosed(t *testing.T) {
	id := model.ListenerID{NetNS: 7, Address: netip.MustParseAddrPort("127.0.0.1:8080")}
	before := model.ClientTotals{Begun: 100}
	before.Outcomes[model.ClientReset] = 3
	var tr tracker
	tr.count(&model.Snapshot{Retired: []model.RetainedTotals{{ID: id, Totals: model.Totals{Clients: &before}}}})
	sum := newTotals(tr.before, Key{Port: 8080, ID: model.ListenerID{NetNS: 7}}, 0)
	now := before
	now.Begun++
	now.Outcomes[model.ClientReset]++
	sum.add(Key{id, 8080}, counted(&model.Totals{Clients: &now}))
	require.Equal(t, uint64(1), sum.sum.Clients.Begun)
	require.Equal(t, uint64(1), sum.sum.Clients.TurnedAway())
}

// A listener whose totals were forgotten begins to count again.
func TestTotalsThatBeginAgain(t *testing.T) {
	drops := func(n uint64) recording.Counted {
		return recording.Counted{Dropped: []model.Drops{{DropKey: model.DropKey{Cause: model.CauseMaxConnections}, Packets: n}}}
	}
	key := Key{Port: 8080}
	sum := newTotals(map[Key]recording.Counted{key: drops(100)}, key, 0)
	for _, n := range []uint64{110, 130, 5, 7} {
		sum.add(key, drops(n))
	}
	require.Equal(t, uint64(137), sum.sum.Packets())
}

// Packets count on where the clients begin again, or are not known.
func TestClientsThatBeginAgain(t *testing.T) {
	key := Key{Port: 8080}
	counted := func(packets, begun uint64) recording.Counted {
		return recording.Counted{
			Dropped:           []model.Drops{{DropKey: model.DropKey{Cause: model.CauseMaxConnections}, Packets: packets}},
			AbandonedRequests: packets, Clients: &model.ClientTotals{Begun: begun},
		}
	}
	sum := newTotals(map[Key]recording.Counted{key: counted(1000, 500)}, key, 0)
	unknown := counted(1002, 0)
	unknown.Clients = nil
	for _, c := range []recording.Counted{counted(1001, 510), unknown, counted(1003, 2), counted(1004, 1)} {
		sum.add(key, c)
	}
	require.Equal(t, uint64(1004), sum.sum.Packets())
	require.Equal(t, uint64(1004), sum.sum.AbandonedRequests)
	require.Equal(t, uint64(510+2+1), sum.sum.Clients.Begun)
}

// The refused of a port are not counted again after its namespace did not answer once.
func TestRefusedOfASilentNamespace(t *testing.T) {
	var tr tracker
	nets := []model.NetNS{{ID: 7}}
	tr.count(&model.Snapshot{NetNS: nets, Targets: []model.Target{{Port: 8080, NetNS: 7, Refused: new(uint64(34))}}})
	tr.count(&model.Snapshot{NetNS: nets})
	require.Equal(t, uint64(34), tr.refused[portKey(7, 8080)])
	tr.count(&model.Snapshot{})
	require.Empty(t, tr.refused)
}

// unwritten takes everything.
type unwritten struct{}

func (unwritten) begin(*open, *recording.Header) bool { return true }
func (unwritten) frame(*open, *recording.Frame) bool  { return true }
func (unwritten) tick(*open, *recording.Tick) bool    { return true }
func (unwritten) end(*open, *recording.End) bool      { return true }

// Who listens on one address after the other, of one port, has no more remembered than the snapshot has; what is counted
// on a listener that comes back with its totals is counted once.
func TestTotalsByChurn(t *testing.T) {
	tracker, v := &tracker{history: NewHistory()}, newLife(1)
	var retired []model.RetainedTotals
	for second := range 3000 {
		s := v.next(connectionsFull)
		l := &s.Listeners[0]
		n := second
		if second%10 == 9 {
			n-- // the one before, again
		}
		l.ID.Address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, byte(n >> 8), byte(n)}), l.Port)
		s.Retired = retired
		retired = append(retired, model.RetainedTotals{ID: l.ID, Totals: l.Totals})
		retired = retired[max(0, len(retired)-100):]
		tracker.record(s, unwritten{})
		require.Len(t, tracker.cases, 1)
		require.LessOrEqual(t, len(tracker.cases[0].totals.seen), minSeen+101)
	}
}

// Who is refused at a port on which two listen is counted in one of their incidents.
func TestRefusedOfTwoListeners(t *testing.T) {
	tracker := &tracker{history: NewHistory()}
	at := time.Now()
	look := func(refused uint64, addrs ...string) {
		at = at.Add(time.Second)
		s := &model.Snapshot{Time: at, Targets: []model.Target{{Port: 8080, NetNS: 7, Up: true, Refused: new(refused)}}}
		for _, addr := range addrs {
			l := model.Listener{ID: model.ListenerID{NetNS: 7, Address: netip.MustParseAddrPort(addr)}, Port: 8080}
			l.Verdict.Status = model.StatusLosing
			s.Listeners = append(s.Listeners, l)
		}
		tracker.observe(s, unwritten{})
	}
	look(3)
	look(5, "10.0.0.5:8080", "127.0.0.1:8080")
	look(20, "127.0.0.1:8080")
	look(39, "10.0.0.5:8080", "127.0.0.1:8080")
	require.Len(t, tracker.cases, 2)
	require.Equal(t, uint64(36), tracker.cases[0].totals.sum.Clients.Outcomes[model.ClientRefused])
	require.Nil(t, tracker.cases[1].totals.sum.Clients)
}

// Who is refused is among the clients per second, while nothing listens and in the second in which somebody does again.
func TestRefusedInThePoints(t *testing.T) {
	h := NewHistory()
	at := time.Unix(1_700_000_000, 0)
	up := model.Listener{ID: model.ListenerID{NetNS: 7, Address: netip.MustParseAddrPort("10.0.0.5:8080")}, Port: 8080}
	down := model.Listener{ID: model.ListenerID{NetNS: 7}, Port: 8080}
	look := func(l model.Listener, refused uint64) recording.Rate {
		at = at.Add(time.Second)
		h.Observe(&model.Snapshot{Time: at, Listeners: []model.Listener{l}, Targets: []model.Target{{Port: 8080, NetNS: 7, Refused: new(refused)}}})
		points := h.Points(KeyOf(&l))
		return points[len(points)-1].Clients
	}
	require.Zero(t, look(up, 3))
	require.Equal(t, recording.Rate{Known: true, Offered: 30, TurnedAway: 30}, look(down, 33))
	require.Equal(t, recording.Rate{Known: true, Offered: 4, TurnedAway: 4}, look(up, 37))
	require.Equal(t, recording.Rate{Known: true}, look(up, 37))
}
