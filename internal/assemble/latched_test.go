package assemble

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func latchedDraft(at time.Time, j evidence.Judgement) (*draft, *model.Listener) {
	id := model.ListenerID{NetNS: 1, Address: netip.MustParseAddrPort("0.0.0.0:8080")}
	store := facts.NewStore()
	store.PutJudgement(id, at.Add(-time.Second), j)
	return &draft{f: store.View(), Snapshot: &model.Snapshot{Time: at}}, &model.Listener{
		ID: id, Port: 8080, Connector: &model.Connector{Server: "tomcat"},
		AcceptQueue: &model.AcceptQueue{Length: 6, Limit: 5},
		Connections: &model.Connections{Accepted: 20, Age: time.Second},
	}
}

// TestTheLatchIsTheLimit: with no configuration readable the verdict at the latch
// is max_connections, with the number that is held and where it is from.
func TestTheLatchIsTheLimit(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	e, l := latchedDraft(now, evidence.Judgement{Cause: model.CauseMaxConnections, Strength: evidence.StrengthAcceptor, Acceptor: model.AcceptorAtLimit})
	require.Equal(t, 20, e.latched(l))
	s := &history{}
	for range 2 {
		s.judge(l, nil, &judged{now: now, every: time.Second, latched: 20, t: reading.DefaultThresholds()})
		now = now.Add(time.Second)
	}
	require.Equal(t, 20, l.Connector.MaxConnections.Value)
	require.Equal(t, "inferred", l.Connector.MaxConnections.Source)
	require.Equal(t, model.StatusSaturated, l.Verdict.Status)
	require.Equal(t, model.CauseMaxConnections, l.Verdict.Cause)
}

// TestNotLatched: old judgements, weak ones and others say nothing of the limit.
func TestNotLatched(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for name, j := range map[string]evidence.Judgement{
		"weak":      {Cause: model.CauseMaxConnections, Strength: evidence.StrengthAcceptor, Acceptor: model.AcceptorAtLimit, Weak: true},
		"accepting": {Cause: model.CauseSlowAccept, Strength: evidence.StrengthAcceptor, Acceptor: model.AcceptorAccepts},
		"paused":    {Cause: model.CauseNotAccepting, Strength: evidence.StrengthAcceptor, Acceptor: model.AcceptorPauses},
		"files":     {Cause: model.CauseOpenFiles, Strength: evidence.StrengthFiles},
		"unknown":   {Cause: model.CauseAcceptQueue},
	} {
		e, l := latchedDraft(now, j)
		require.Zero(t, e.latched(l), name)
	}
	e, l := latchedDraft(now, evidence.Judgement{Cause: model.CauseMaxConnections, Strength: evidence.StrengthPhases, Turned: 21})
	require.Equal(t, 21, e.latched(l), "connections are taken only as others end")
	e, l = latchedDraft(now, evidence.Judgement{Cause: model.CauseMaxConnections, Strength: evidence.StrengthAcceptor, Acceptor: model.AcceptorAtLimit})
	e.Time = now.Add(time.Minute)
	require.Zero(t, e.latched(l))
}

// TestSuspendedIsNoLimit: where the poller stands as well, and requests are unread in front of idle workers, it is no
// limit that the acceptor waits for.
func TestSuspendedIsNoLimit(t *testing.T) {
	e, l := latchedDraft(time.Unix(1_700_000_000, 0), evidence.Judgement{Cause: model.CauseMaxConnections, Strength: evidence.StrengthAcceptor, Acceptor: model.AcceptorAtLimit})
	l.Connector.PoolThreads, l.Connector.BusyThreads = new(10), new(0)
	l.Process = &model.Process{Downstream: &model.Downstream{Workers: &model.Workers{PollerBlocked: true}}}
	require.Equal(t, 20, e.latched(l), "nothing is unread")
	l.Connections.Unread = time.Second
	require.Zero(t, e.latched(l))
	l.Connections.Unread, l.Connections.Phases[model.ClientClosed] = 0, 1
	require.Zero(t, e.latched(l), "a client has closed, and nobody has noticed")
	l.Connector.BusyThreads = new(10)
	require.Equal(t, 20, e.latched(l), "all workers have something to do")
}

// TestWeakEvidenceIsSaid: what was missing is named, by the listener it concerns.
func TestWeakEvidenceIsSaid(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	missing := []evidence.Missing{{Subject: evidence.SubjectSafepoints, Why: "permission denied"}}
	e, l := latchedDraft(now, evidence.Judgement{Cause: model.CauseMaxConnections, Strength: evidence.StrengthAcceptor, Weak: true, Missing: missing})
	e.sayWeak(l)
	require.Equal(t, []model.Unavailable{{
		What: "safepoints as evidence of 0.0.0.0:8080", Why: "permission denied; the cause rests on weak evidence",
	}}, e.miss.List)
	e, l = latchedDraft(now, evidence.Judgement{Cause: model.CauseMaxConnections, Strength: evidence.StrengthAcceptor, Acceptor: model.AcceptorAtLimit})
	e.sayWeak(l)
	require.Empty(t, e.miss.List)
}

// TestTheLatchIsNoFlicker: that the connections are used up as well is shown as soon as
// the acceptor shows it, and stays while it is not read for a moment.
func TestTheLatchIsNoFlicker(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := &history{}
	look := func(latched bool) model.Cause {
		l := with(shown(0, 200, 50, 2), func(l *model.Listener) {
			l.Connector.MaxConnections, l.AcceptQueue.OldestWait = nil, new(3*time.Second)
		})
		held := 0
		if latched {
			held = l.Connections.SlotsInUse()
		}
		s.judge(l, nil, &judged{now: now, every: time.Second, latched: held, t: reading.DefaultThresholds()})
		now = now.Add(time.Second)
		return l.Verdict.Cause
	}
	look(false)
	require.Equal(t, model.CauseMaxThreads, look(false))
	require.Equal(t, model.CauseMaxConnections, look(true))
	require.Equal(t, model.CauseMaxConnections, look(false))
	require.Equal(t, model.CauseMaxConnections, look(true))
}
