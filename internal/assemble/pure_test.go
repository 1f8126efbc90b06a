package assemble

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/clients/accounts"
	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hangs"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// full is what is known of a Tomcat at its limit of connections, some seconds after begin:
// its queue is full, and packets were dropped.
func full(begin time.Time, seconds int) *facts.View {
	now := begin.Add(time.Duration(seconds) * time.Second)
	id := model.ListenerID{NetNS: 1, Address: netip.MustParseAddrPort("0.0.0.0:8080")}
	found := &connections.Found{}
	found.Counts.At, found.Counts.Accepted = now, 20
	found.Counts.Phases[model.InService] = 20
	store := facts.NewStore()
	store.PutConnections(1, now.Add(-time.Second), map[model.ListenerID]*connections.Found{id: found}, nil)
	store.PutConnections(1, now, map[model.ListenerID]*connections.Found{id: found}, nil)
	f := store.View()
	f.Time = now
	f.Watchlist = &facts.Watchlist{At: begin, NetNS: []uint64{1}, Watched: []facts.Watched{{
		Listening: &facts.Listening{ID: id, Members: []sockdiag.Listener{{Inode: 7, RecvQ: 6, SendQ: 5}}, Owner: &owner.Process{PID: 42, StartTime: 1, Comm: "java"}},
		Connector: &model.Connector{MaxConnections: &model.Setting[int]{Value: 20, Kind: model.SourceFile}},
	}}}
	f.Watchlist.Index()
	dropped := uint64(seconds)
	f.Namespaces = []facts.Namespace{{
		ID: 1, Answers: true, SysctlOK: true, Sysctl: map[string]int{"somaxconn": 4096}, Sockstat: map[string]int{"inuse": 20}, Counted: true,
		Sampled: []facts.Sampled{{ID: id, Inode: 7, Queue: losses.Queue{At: now, Length: 6, Limit: 5}, Full: begin}},
		Window:  losses.Window{At: now, Interval: 10 * time.Second, Counters: model.Counters{"ListenDrops": dropped}, Delta: model.Counters{"ListenDrops": dropped}},
		Accounts: map[model.ListenerID]*losses.Report{id: {
			Recent: 6, Peak: &losses.Peak{Length: 6, At: now},
			Losses: &model.Losses{DroppedPackets: dropped, By: []model.Drops{{DropKey: model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}, Packets: dropped}}},
		}},
	}}
	a := &accounts.Account{Past: []accounts.Mark{{At: begin}}, Totals: model.ClientTotals{Begun: 3 * dropped}}
	a.Totals.Outcomes[model.ClientGaveUp] = 2 * dropped
	f.Clients = &accounts.Clients{Namespaces: map[uint64]*accounts.Namespace{1: {
		Followed: true, Opened: begin, Observed: now.Sub(begin), Accounts: map[netip.AddrPort]*accounts.Account{id.Address: a, accounts.Port(8080): {}},
	}}}
	return f
}

// The same state and the same facts make the same snapshot and the same state, as often as
// they are asked, and neither is changed by it.
func TestAssembleIsPure(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	opt := Options{Thresholds: reading.DefaultThresholds(), Every: time.Second, Looping: true}
	var state *State
	for i := 1; i < 8; i++ {
		f := full(begin, i)
		before, again := full(begin, i), state.copy()
		next, snap := Snapshot(state, f, opt)
		require.Equal(t, before, f, "the facts stay")
		if state != nil {
			require.Equal(t, again.histories, state.histories, "so does the state")
		}
		repeated, same := Snapshot(state, f, opt)
		require.Equal(t, snap, same)
		require.Equal(t, next.histories, repeated.histories)
		state = next
		require.Len(t, snap.Listeners, 1)
		require.EqualValues(t, 2*i, snap.Listeners[0].Losses.Clients.TurnedAway())
		if i > 1 {
			require.Equal(t, model.CauseMaxConnections, snap.Listeners[0].Verdict.Cause)
			require.Equal(t, model.StatusLosing, snap.Listeners[0].Verdict.Status)
		}
	}
}

// Clients may be turned away though no packet was dropped: that trouble, too, has the cause of the
// verdict of then, and has it when all is quiet again.
func TestCauseOfClientsThatWereTurnedAway(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	opt := Options{Thresholds: reading.DefaultThresholds(), Every: time.Second, Looping: true}
	facts := func(seconds int, gaveUp uint64) *facts.View {
		f := full(begin, seconds)
		id := f.Watchlist.Watched[0].ID
		f.Namespaces[0].Accounts[id].Losses = &model.Losses{}
		a := f.Clients.Namespaces[1].Accounts[id.Address]
		a.Totals.Outcomes[model.ClientGaveUp] = gaveUp
		a.Past = []accounts.Mark{{At: begin.Add(time.Duration(seconds-1) * time.Second), Totals: a.Totals}}
		return f
	}
	var state *State
	var snap *model.Snapshot
	for i := 1; i < 8; i++ {
		state, snap = Snapshot(state, facts(i, uint64(5*i)), opt)
	}
	l := &snap.Listeners[0]
	require.Equal(t, model.CauseMaxConnections, l.Verdict.Cause)
	require.Equal(t, model.CauseMaxConnections, l.Recent.Cause)
	require.EqualValues(t, 35, *l.Recent.ClientsTurnedAway)

	calm := facts(20, 35)
	calm.Namespaces[0].Sampled[0].Queue.Length, calm.Namespaces[0].Sampled[0].Full = 0, time.Time{}
	calm.Connections = nil
	_, snap = Snapshot(state, calm, opt)
	require.Equal(t, model.CauseMaxConnections, snap.Listeners[0].Recent.Cause)
	require.True(t, snap.Listeners[0].Recent.Over)
}

// A drop that waits gets the cause that the readings around it show, and what waits on is
// asked for again in time.
func TestCausesOfDropsThatWait(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	opt := Options{Thresholds: reading.DefaultThresholds(), Every: time.Second, Looping: true}
	state, _ := Snapshot(nil, full(begin, 1), opt)
	f := full(begin, 2)
	id := f.Watchlist.Watched[0].ID
	drop := losses.Drop{Since: f.Time.Add(-time.Millisecond), Until: f.Time}
	f.Namespaces[0].Accounts[id].Waiting = []losses.Drop{drop}
	named := losses.Causes{}
	named.Add(drop, losses.Cause{Cause: model.CauseMaxConnections, Evidence: model.EvidencePhases})
	require.Equal(t, map[model.ListenerID]losses.Causes{id: named}, Causes(state, f, opt))

	f.Connections = nil
	require.Equal(t, map[model.ListenerID]losses.Causes{id: {}}, Causes(state, f, opt), "nothing was read since")
	next, _ := Snapshot(state, f, opt)
	require.Equal(t, drop.Since.Add(causePatience), next.Waits())
	opt.Final = true
	require.Len(t, Causes(state, f, opt)[id], 1, "nothing will be")
}

// That others' memory does not answer is said of a process whose threads were not read for that.
func TestOthersMemoryHangs(t *testing.T) {
	f := full(time.Unix(1_700_000_000, 0), 1)
	java := hostproc.ProcessKey{PID: 42, StartTime: 1}
	store := facts.NewStore()
	store.PutProcess(java, f.Time, &model.Process{}, nil)
	store.PutDownstream(java, facts.Downstream{Value: &model.Downstream{}, WorkersErr: hangs.ErrOthers})
	f.Processes, f.Downstream = store.View().Processes, store.View().Downstream
	_, snap := Snapshot(nil, f, Options{Thresholds: reading.DefaultThresholds(), Every: time.Second, Looping: true})
	require.Contains(t, fmt.Sprint(snap.Unavailable), "polling worker threads of pid 42")
	require.Contains(t, fmt.Sprint(snap.Unavailable), hangs.ErrOthers.Error())
}

// That a process has more descriptors than are looked at is said where its user's connections are shown for its own.
func TestManyDescriptors(t *testing.T) {
	f := full(time.Unix(1_700_000_000, 0), 1)
	java := hostproc.ProcessKey{PID: 42, StartTime: 1}
	store := facts.NewStore()
	store.PutProcess(java, f.Time, &model.Process{}, nil)
	store.PutDownstream(java, facts.Downstream{Value: &model.Downstream{ByUser: true}, Err: fmt.Errorf("fd of pid 42: %w", hostproc.ErrManyDescriptors)})
	f.Processes, f.Downstream = store.View().Processes, store.View().Downstream
	_, snap := Snapshot(nil, f, Options{Thresholds: reading.DefaultThresholds(), Every: time.Second, Looping: true})
	require.Contains(t, fmt.Sprint(snap.Unavailable), "outgoing connections of pid 42")
	require.Contains(t, fmt.Sprint(snap.Unavailable), hostproc.ErrManyDescriptors.Error())
}
