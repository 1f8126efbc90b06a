package predict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

const hostNS = 7

// truth is a load of which everything is known, and what a look at it shows.
type truth struct {
	plan.Input
	at     time.Duration // since it began
	steady bool          // a look back of ten seconds, else one at everything since the beginning
}

// overloaded is Tomcat with 4 threads, 20 connections and a queue of 6, and a load that no
// setting of that serves.
func overloaded(change func(*plan.Input)) truth {
	in := plan.Input{
		Threads: 4, MaxConnections: 20, AcceptCount: 5, InForce: true, Syncookies: true,
		ServiceTime: time.Second, Rate: 10, Duration: time.Minute, ConnectTimeout: 2500 * time.Millisecond,
	}
	if change != nil {
		change(&in)
	}
	return truth{in, 50 * time.Second, in.Rate > 0}
}

// seen is the snapshot that an agent would have made of it.
func (tr truth) seen(t *testing.T) (*model.Snapshot, *model.Listener) {
	t.Helper()
	p, err := plan.Simulate(tr.Input)
	require.NoError(t, err)
	now, before, span := pointAt(p, tr.at), plan.Point{}, tr.at
	if tr.steady {
		span = 10 * time.Second
		before = pointAt(p, tr.at-span)
	}
	c := &model.Clients{Observed: span}
	c.LetIn = uint64(now.Served-before.Served) + uint64(inside(now)-inside(before))
	c.Outcomes[model.ClientConnected] = c.LetIn
	c.Outcomes[model.ClientGaveUp] = uint64(now.Lost - before.Lost)
	at := time.Unix(1_700_000_000, 0)
	l := model.Listener{
		ID: model.ListenerID{NetNS: hostNS}, Members: 1,
		AcceptQueue: &model.AcceptQueue{Length: now.AcceptQueue, Limit: tr.AcceptCount},
		Connector: &model.Connector{
			MaxThreads: &model.Setting[int]{Value: tr.Threads}, MaxConnections: &model.Setting[int]{Value: tr.MaxConnections},
		},
		Connections: &model.Connections{
			Accepted: now.InService + now.Waiting,
			Phases:   [model.NumPhases]int{model.InService: now.InService, model.Waiting: now.Waiting},
		},
		Losses: &model.Losses{Clients: c},
		Recent: &model.Recent{Latest: at.Add(-tr.at)},
		Verdict: model.Verdict{
			Status: model.StatusLosing, Cause: model.CauseMaxConnections,
			Answer: model.Answer{Do: []model.Step{
				{Text: "look"},
				{Setting: "maxThreads", From: "4", To: "20", Limit: "max_threads"},
				{Setting: "maxConnections", From: "20", To: "100", Limit: "max_connections"},
			}},
		},
	}
	c.Begun = uint64(tr.Requests)
	c.Arrivals = &model.Arrivals{Clients: c.Begun, First: tr.at, Last: tr.at}
	if tr.steady {
		c.Arrivals = &model.Arrivals{First: tr.at, Last: 0}
		c.Begun = uint64(tr.Rate * span.Seconds())
		l.Lately = &model.Lately{Span: span, Losses: *l.Losses, Delta: model.Counters{"PassiveOpens": c.LetIn}}
	}
	return &model.Snapshot{
		Time: at, Interval: time.Minute,
		NetNS: []model.NetNS{{ID: hostNS, Delta: model.Counters{"PassiveOpens": c.LetIn}, Sysctl: map[string]int{"somaxconn": 4096, "tcp_syncookies": 1}}},
	}, &l
}

func inside(p plan.Point) int { return p.InService + p.Waiting + p.AcceptQueue }

func TestEffectOfASteadyLoad(t *testing.T) {
	s, l := overloaded(nil).seen(t)
	load, ok := Measure(l, s)
	require.True(t, ok)
	require.InDelta(t, 10, load.Rate, 1)
	require.InDelta(t, 1, load.ServiceTime.Seconds(), .1)
	v := load.Verdict(l.Verdict)
	require.Empty(t, v.Answer.Do[0].Effect)
	require.Regexp(t, `^with 20 threads all are served, the slowest after (0\.9|1|1\.1) s; now (59|60|61) % are turned away$`, v.Answer.Do[1].Effect)
	require.Equal(t, "not needed for this load once step 2 is done", v.Answer.Do[2].Effect)
	require.Regexp(t, `^for clients that wait: with 100 connections nearly as many are turned away as now: `, alone(&load, l.Verdict.Answer.Do[2]))
	require.Empty(t, l.Verdict.Answer.Do[1].Effect, "the verdict given is not changed")
}

// ofABurst is the load of 20 clients at once, on a server with room for 9.
func ofABurst(t *testing.T) Load {
	t.Helper()
	tr := overloaded(func(in *plan.Input) {
		in.Threads, in.MaxConnections, in.AcceptCount = 1, 4, 4
		in.Rate, in.Duration, in.Requests, in.ConnectTimeout = 0, 0, 20, 900*time.Millisecond
	})
	tr.at = 7 * time.Second
	s, l := tr.seen(t)
	load, ok := Measure(l, s)
	require.True(t, ok)
	return load
}

// Scenario A9, small: ten clients at once on a server with room for three.
func TestEffectOfABurst(t *testing.T) {
	load := ofABurst(t)
	require.Equal(t, 20, load.Requests)
	connections, queue, threads := model.Step{To: "25", Limit: "max_connections"}, model.Step{To: "16", Limit: "accept_queue"}, model.Step{To: "2", Limit: "max_threads"}
	require.Regexp(t, `^for clients that wait: with 25 connections all are served, the slowest after \d\d s; now 11 of 20 are turned away$`, alone(&load, connections))
	require.Regexp(t, `^for clients that wait: with a queue of 17 all are served, .*; now 11 of 20 are turned away$`, alone(&load, queue))
	require.Regexp(t, `^with 2 threads (nearly as many|1[01] of 20)`, alone(&load, threads))
}

func alone(l *Load, s model.Step) string {
	return l.Verdict(model.Verdict{Answer: model.Answer{Do: []model.Step{s}}}).Answer.Do[0].Effect
}

// A further step is taken after those before it; one that lowers a limit is an alternative to them.
func TestEffectOfFurtherSteps(t *testing.T) {
	load := ofABurst(t)
	do := load.Verdict(model.Verdict{Answer: model.Answer{Do: []model.Step{
		{Text: "look"},
		{From: "4", To: "25", Limit: "max_connections"},
		{From: "1", To: "10", Limit: "max_threads"},
		{From: "4", To: "100", Limit: "accept_queue"},
		{From: "4", To: "2", Limit: "max_connections"},
	}}}).Answer.Do
	require.Regexp(t, `^for clients that wait: with 25 connections all are served, the slowest after (19|2\d) s; now 11 of 20 are turned away$`, do[1].Effect)
	require.Regexp(t, `^(for clients that wait: )?then with 10 threads all are served, the slowest after [23](\.\d)? s$`, do[2].Effect)
	require.Equal(t, "not needed for this load once step 3 is done", do[3].Effect)
	require.NotContains(t, do[4].Effect, "then", "it is done instead")
}

// No claim by default.
func TestNothingIsPredicted(t *testing.T) {
	for name, change := range map[string]func(*model.Snapshot, *model.Listener){
		"the clients are not followed":     func(_ *model.Snapshot, l *model.Listener) { l.Lately.Losses.Clients = nil },
		"packets were not read":            func(_ *model.Snapshot, l *model.Listener) { l.Lately.Losses.Clients.PacketsLost = 3 },
		"a flood":                          func(_ *model.Snapshot, l *model.Listener) { l.Lately.Losses.Clients.Flood = new(model.ClientFlood) },
		"TLS":                              func(_ *model.Snapshot, l *model.Listener) { l.Connector.TLS = true },
		"kept connections":                 func(_ *model.Snapshot, l *model.Listener) { l.Connections.Phases[model.Idle] = 9 },
		"another cause":                    func(_ *model.Snapshot, l *model.Listener) { l.Verdict.Cause = model.CauseJVMPause },
		"a pool behind the threads":        func(_ *model.Snapshot, l *model.Listener) { l.Verdict.Chain = []model.Cause{model.CauseConnectionPool} },
		"the trouble is young":             func(s *model.Snapshot, l *model.Listener) { l.Recent.Latest = s.Time.Add(-12 * time.Second) },
		"they have just begun to come":     func(_ *model.Snapshot, l *model.Listener) { l.Losses.Clients.Arrivals.First = 9 * time.Second },
		"when they came is not known":      func(_ *model.Snapshot, l *model.Listener) { l.Losses.Clients.Arrivals = nil },
		"it is over":                       func(_ *model.Snapshot, l *model.Listener) { l.Recent.Over = true },
		"no limit is advised":              func(_ *model.Snapshot, l *model.Listener) { l.Verdict.Answer.Do = l.Verdict.Answer.Do[:1] },
		"clients left without an answer":   func(_ *model.Snapshot, l *model.Listener) { l.Connections.Phases[model.ClientClosed] = 1 },
		"threads rest":                     func(_ *model.Snapshot, l *model.Listener) { l.Connections.Phases[model.InService] = 3 },
		"the limits are not known":         func(_ *model.Snapshot, l *model.Listener) { l.Connector.MaxThreads = nil },
		"too few were finished":            func(_ *model.Snapshot, l *model.Listener) { l.Lately.Losses.Clients.LetIn = 3; l.Lately.Delta = nil },
		"another state than the simulated": func(_ *model.Snapshot, l *model.Listener) { l.Connections.Accepted = 9; l.AcceptQueue.Length = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s, l := overloaded(nil).seen(t)
			change(s, l)
			_, ok := Measure(l, s)
			require.False(t, ok)
		})
	}
}

// While nobody of a burst has left, their patience is not known: it is said of those that wait.
func TestEffectOfABurstThatStillWaits(t *testing.T) {
	tr := overloaded(func(in *plan.Input) {
		in.Rate, in.Duration, in.Requests, in.ConnectTimeout, in.ServiceTime = 0, 0, 26, 0, 2*time.Second
	})
	tr.at = 6500 * time.Millisecond
	s, l := tr.seen(t)
	load, ok := Measure(l, s)
	require.True(t, ok)
	require.InDelta(t, 2, load.ServiceTime.Seconds(), .3)
	do := load.Verdict(l.Verdict).Answer.Do
	require.Regexp(t, `^for clients that wait: with 20 threads all are served, the slowest after (3\.[6-9]|4(\.\d)?) s; now the slowest waits 1[2-5] s$`, do[1].Effect)
}

// Scenario E2: clients with kept connections take all places, and others wait behind them.
func TestEffectOnKeptConnections(t *testing.T) {
	kept := func(change func(*model.Listener)) string {
		l := &model.Listener{
			Connections: &model.Connections{Accepted: 100}, AcceptQueue: &model.AcceptQueue{Length: 50, Limit: 50}, Losses: &model.Losses{Clients: &model.Clients{}},
			Verdict: model.Verdict{Status: model.StatusSaturated, Cause: model.CauseKeepAliveIdle, Chain: []model.Cause{model.CauseMaxConnections}, Answer: model.Answer{Do: []model.Step{{To: "200", Limit: "max_connections"}}}},
		}
		change(l)
		load, ok := Measure(l, &model.Snapshot{})
		if !ok {
			return ""
		}
		return load.Verdict(l.Verdict).Answer.Do[0].Effect
	}
	require.Equal(t, "with 200 connections all 150 clients are inside; now 100 are, and 50 wait outside", kept(func(*model.Listener) {}))
	require.Equal(t, "with 120 connections 120 of 150 clients are inside; now 100 are, and 50 wait outside", kept(func(l *model.Listener) { l.Verdict.Answer.Do[0].To = "120" }))
	require.Equal(t, "with 200 connections all 155 clients seen at once are inside; now 100 are, and 55 wait outside", kept(func(l *model.Listener) {
		l.Losses.Clients.Waiting, l.Losses.Clients.Outcomes[model.ClientGaveUp] = 5, 3
	}))
	require.Empty(t, kept(func(l *model.Listener) { l.Verdict.Cause = model.CauseMaxConnections }))
	require.Empty(t, kept(func(l *model.Listener) { l.Verdict.Answer.Do[0].Limit = "accept_queue" }))
	require.Empty(t, kept(func(l *model.Listener) { l.Verdict.Chain = append(l.Verdict.Chain, model.CauseMaxThreads) }))
	require.Empty(t, kept(func(l *model.Listener) { l.AcceptQueue.Length = 0 }))
}

// Scenario G1: the threads wait for a pool of connections.
func TestEffectOfALargerPool(t *testing.T) {
	tr := overloaded(func(in *plan.Input) {
		in.Rate, in.Duration, in.Requests, in.ConnectTimeout = 0, 0, 60, 0
		in.Threads, in.MaxConnections, in.AcceptCount = 20, 8192, 100
		in.ServiceTime, in.BackendConnections, in.BackendTime = time.Millisecond, 3, 2500*time.Millisecond
	})
	waits := func(at time.Duration) (*model.Snapshot, *model.Listener) {
		tr.at = at
		s, l := tr.seen(t)
		l.Losses.Clients.Arrivals.Answered = 500 * time.Millisecond
		l.Verdict.Status, l.Verdict.Cause, l.Verdict.Chain = model.StatusSaturated, model.CauseConnectionPool, []model.Cause{model.CauseMaxThreads, model.CauseConnectionPool}
		l.Verdict.Answer.Do = []model.Step{{Text: "look"}, {Setting: "pool", From: "3", To: "20", Limit: "connection_pool"}}
		return s, l
	}
	s, l := waits(3 * time.Second)
	_, ok := Measure(l, s)
	require.False(t, ok, "one round, of which it is known to a second how long it took")
	for at, ago := range map[time.Duration]time.Duration{7700: 0, 8400: 400, 9800: 2000} { // three rounds
		s, l = waits(at * time.Millisecond)
		l.Losses.Clients.Arrivals.Answered = ago * time.Millisecond
		load, ok := Measure(l, s)
		require.True(t, ok, at)
		require.InDelta(t, 2.5, load.BackendTime.Seconds(), .5, at)
	}
	s, l = waits(13 * time.Second)
	load, ok := Measure(l, s)
	require.True(t, ok)
	require.InDelta(t, 2.5, load.BackendTime.Seconds(), .2)
	require.Regexp(t, `^for clients that wait: with a pool of 20, if as many are answered at once as fast, all are served, the slowest after (7(\.\d)?|8(\.\d)?) s; now the slowest waits (4[7-9]|5\d) s$`, load.Verdict(l.Verdict).Answer.Do[1].Effect)
	l.Verdict.Answer.Do = l.Verdict.Answer.Do[:1]
	_, ok = Measure(l, s)
	require.False(t, ok, "the pool's size is not known")
}

// Scenario C1: who has given up is worked for all the same, and what waits grows.
func TestEffectWhereWhatWaitsGrows(t *testing.T) {
	tr := overloaded(func(in *plan.Input) {
		in.Threads, in.MaxConnections, in.AcceptCount, in.Rate, in.Duration, in.ConnectTimeout, in.ClientTimeout = 1, 8192, 100, 3, 2*time.Minute, 0, 10*time.Second
	})
	tr.at = 40 * time.Second
	s, l := tr.seen(t)
	lately := l.Lately.Losses.Clients
	lost := lately.Outcomes[model.ClientGaveUp]
	lately.Outcomes[model.ClientGaveUp] = 0
	lately.LetIn, lately.Begun = lost, lost
	lately.Answers = model.ClientAnswers{Known: true, Unanswered: lost}
	l.Lately.Losses.AbandonedRequests = 10
	l.Connections.Phases[model.ClientClosed] = l.Connections.Accepted - 30 // of ten seconds
	l.Connections.Phases[model.Waiting] = 29
	l.Connections.Abandoned = l.Connections.Phases[model.ClientClosed]
	l.Verdict.Cause = model.CauseMaxThreads
	l.Verdict.Answer.Do = []model.Step{{To: "4", Limit: "max_threads"}}
	load, ok := Measure(l, s)
	require.True(t, ok)
	require.Regexp(t, `^with 4 threads all are served, the slowest after 1(\.\d)? s; now (9\d|100) % are turned away$`, load.Verdict(l.Verdict).Answer.Do[0].Effect)

	tr.ClientTimeout = 0
	s, l = tr.seen(t)
	l.Verdict.Status, l.Verdict.Cause = model.StatusSaturated, model.CauseMaxThreads
	l.Lately.Losses.Clients.LetIn, l.Lately.Losses.Clients.Answers = 30, model.ClientAnswers{Known: true, Answered: 10}
	l.Verdict.Answer.Do = []model.Step{{To: "4", Limit: "max_threads"}}
	load, ok = Measure(l, s)
	require.True(t, ok)
	require.Equal(t, "for clients that wait: with 4 threads all are served, the slowest after 1 s; now 2 a second more come than are served", load.Verdict(l.Verdict).Answer.Do[0].Effect)
}

// Measured on a real Tomcat: of a burst it is known late who has left, and what can be said follows from
// who is inside, or nothing is said.
func TestBurstOfWhomItIsNotKnownWhoHasLeft(t *testing.T) {
	const ms = time.Millisecond
	limits := func(threads, connections, queue int) plan.Input {
		return plan.Input{Threads: threads, MaxConnections: connections, AcceptCount: queue, InForce: true, Syncookies: true, Somaxconn: 4096, MaxSynBacklog: 2048}
	}
	// A9: 10 clients within 100 ms, of whom 7 left after 2 s, for a server of one, 3 s each.
	a9 := measured{span: 8152 * ms, spread: 101 * ms, offered: 10, finished: 2, worked: 2, answered: 6146 * ms, inside: 1, busy: 1, trying: 7, waits: true, atOnce: 3, limits: limits(1, 1, 1)}
	load, ok := a9.fit()
	require.True(t, ok)
	require.Regexp(t, "^with 20 threads nearly as many are turned away as now: 7 of 10$", load.effect(model.Step{Limit: "max_threads", To: "20"}))
	require.Regexp(t, "^for clients that wait: with 10 connections all are served, the slowest after 3[01] s; now 7 of 10 are turned away$", load.effect(model.Step{Limit: "max_connections", To: "10"}))
	early := a9
	early.span, early.finished, early.worked, early.answered, early.inside = 4142*ms, 1, 1, 3142*ms, 2
	_, ok = early.fit()
	require.False(t, ok, "one that waits may have taken the place that is free")

	// I1: 60 clients at once, who wait 12 s, 4 threads, 20 connections, a queue of 5, 2 s each.
	i1 := measured{span: 8734 * ms, offered: 60, finished: 16, worked: 16, answered: 8234 * ms, inside: 22, busy: 4, stalling: 22, waits: true, atOnce: 26, limits: limits(4, 20, 5)}
	_, ok = i1.fit()
	require.False(t, ok, "who is half open finds room late, and may have left before")
	i1.span, i1.finished, i1.worked, i1.answered, i1.inside, i1.left, i1.unanswered, i1.waits = 12749*ms, 24, 24, 12249*ms, 14, 12, true, false
	load, ok = i1.fit()
	require.True(t, ok)
	require.Equal(t, 12*time.Second, load.ClientTimeout)
	require.Equal(t, "with 20 threads 2 to 22 of 60 are turned away; now 40 of 60 are turned away", load.effect(model.Step{Limit: "max_threads", To: "20"}))
	require.Equal(t, "with 100 connections nearly as many are turned away as now: 40 of 60", load.effect(model.Step{Limit: "max_connections", To: "100"}))
}

// I1 again: whenever it is asked and however many are known to have left, it is not said that all would be served.
// Of the same clients, with 20 threads, 39 to 45 of 60 were.
func TestBurstThatMayHaveComeCloserTogether(t *testing.T) {
	const ms = time.Millisecond
	base := measured{
		offered: 60, finished: 24, busy: 4, answered: 11749 * ms, unanswered: true, atOnce: 26,
		limits: plan.Input{Threads: 4, MaxConnections: 20, AcceptCount: 5, InForce: true, Syncookies: true, Somaxconn: 4096, MaxSynBacklog: 2048},
	}
	said := 0
	for _, m := range []measured{
		{worked: 24, inside: 14, left: 12},
		{worked: 24, inside: 14, left: 10, turnedAway: 22},
		{worked: 26, inside: 12, left: 8, turnedAway: 26},
		{worked: 28, inside: 10, left: 10, turnedAway: 26},
	} {
		at := base
		at.worked, at.inside, at.left, at.turnedAway = m.worked, m.inside, m.left, m.turnedAway
		for at.span = 12100 * ms; at.span < 15*time.Second; at.span += 300 * ms {
			load, ok := at.fit()
			if !ok {
				continue
			}
			if effect := load.effect(model.Step{Limit: "max_threads", To: "20"}); effect != "" {
				said++
				require.Regexp(t, `^with 20 threads (\d to )?(1[2-9]|2[0-6]) of 60 are turned away; now (3\d|40) of 60 are turned away$`, effect, at.span)
			}
		}
	}
	require.Positive(t, said)
}

// I1, four runs: 6 to 20 of 60 found room at once although there was some for 26, as the acceptor had to be woken; the
// others asked again together after a second. With 20 threads 4, 15, 16 and 21 of 60 had no answer, as they then came.
func TestBurstBeforeTheAcceptorRuns(t *testing.T) {
	const ms = time.Millisecond
	for _, atOnce := range []int{6, 7, 8, 20} {
		m := measured{
			span: 13799 * ms, offered: 60, turnedAway: 14, finished: 24, worked: 24, answered: 12047 * ms, inside: 14, busy: 4, left: 14, stalling: 22,
			unanswered: true, atOnce: atOnce,
			limits: plan.Input{Threads: 4, MaxConnections: 20, AcceptCount: 5, InForce: true, Syncookies: true, Somaxconn: 4096, MaxSynBacklog: 2048},
		}
		load, ok := m.fit()
		require.True(t, ok)
		require.Equal(t, "with 20 threads 2 to 22 of 60 are turned away; now 36 of 60 are turned away", load.effect(model.Step{Limit: "max_threads", To: "20"}), atOnce)
		require.Equal(t, "with a queue of 31 nearly as many are turned away as now: 36 of 60", load.effect(model.Step{Limit: "accept_queue", To: "30"}))
	}
}

// I1, a fifth run: all had left, and of those who came in after that fewer than simulated were still inside.
func TestBurstWhoseDeadAreWorkedOff(t *testing.T) {
	const ms = time.Millisecond
	m := measured{
		span: 14943 * ms, offered: 60, turnedAway: 21, finished: 24, worked: 28, answered: 12186 * ms, inside: 10, busy: 4, left: 10, stalling: 15,
		unanswered: true, atOnce: 6,
		limits: plan.Input{Threads: 4, MaxConnections: 20, AcceptCount: 5, InForce: true, Syncookies: true, Somaxconn: 4096, MaxSynBacklog: 2048},
	}
	load, ok := m.fit()
	require.True(t, ok)
	require.Equal(t, "with 20 threads 2 to 22 of 60 are turned away; now 36 of 60 are turned away", load.effect(model.Step{Limit: "max_threads", To: "20"}))
	m.inside, m.left = 13, 10
	load, ok = m.fit()
	require.True(t, ok)
	require.Zero(t, load.now, "three may still have an answer")
	m.inside, m.trying = 10, 1
	require.Zero(t, m.fraction(), "one still tries to connect, and may find room")
}

// C5, scaled: there is room for all 400 inside, and those who found the queue full were let in a second later. Of the
// same clients, with 40 threads, all were served, those of the last round just in time.
func TestBurstWithRoomForAll(t *testing.T) {
	const ms = time.Millisecond
	for _, atOnce := range []int{101, 285, 400} {
		m := measured{
			span: 21000 * ms, offered: 400, turnedAway: 220, finished: 180, worked: 200, answered: 18300 * ms, inside: 200, busy: 20, left: 200,
			unanswered: true, atOnce: atOnce,
			limits: plan.Input{Threads: 20, MaxConnections: 8192, AcceptCount: 100, InForce: true, Syncookies: true, Somaxconn: 4096, MaxSynBacklog: 2048},
		}
		load, ok := m.fit()
		require.True(t, ok)
		require.Equal(t, "with 40 threads 40 of 400 are turned away; now 220 of 400 are turned away", load.effect(model.Step{Limit: "max_threads", To: "40"}), atOnce)
	}
}

// Scenario B1: there are files for 20 connections of 8,192.
func TestEffectOfMoreOpenFiles(t *testing.T) {
	tr := overloaded(func(in *plan.Input) { in.Threads, in.MaxConnections, in.Rate = 200, 20, 30 })
	s, l := tr.seen(t)
	l.Process = &model.Process{OpenFiles: new(70), OpenFilesLimit: new(70)}
	l.Connector.MaxConnections.Value = 8192
	l.Verdict.Cause = model.CauseOpenFiles
	l.Verdict.Answer.Do = []model.Step{{Setting: "LimitNOFILE", From: "70", To: "140", Limit: "open_files"}}
	load, ok := Measure(l, s)
	require.True(t, ok)
	require.Regexp(t, `^with 140 open files all are served, the slowest after (0\.9|1|1\.1) s; now 3\d % are turned away$`, load.Verdict(l.Verdict).Answer.Do[0].Effect)
	load.files.configured = 20
	require.Regexp(t, `^with 140 open files nearly as many are turned away as now`, load.Verdict(l.Verdict).Answer.Do[0].Effect, "maxConnections is the next limit")
	l.Process.OpenFilesLimit = nil
	_, ok = Measure(l, s)
	require.False(t, ok)
}

// Scenario C2: who has left stands in the accept queue, in which the server does not see it.
func TestEffectWhereTheQueueHoldsWhoHasLeft(t *testing.T) {
	tr := overloaded(func(in *plan.Input) {
		in.Threads, in.MaxConnections, in.AcceptCount = 200, 1, 100
		in.ServiceTime, in.Rate, in.Duration, in.ConnectTimeout, in.ClientTimeout = 500*time.Millisecond, 5, time.Minute, 2500*time.Millisecond, 10*time.Second
	})
	for tr.at = 30 * time.Second; tr.at < 55*time.Second; tr.at += 4 * time.Second {
		s, l := tr.seen(t)
		lately := l.Lately.Losses.Clients
		lately.Answers = model.ClientAnswers{Known: true, Unanswered: 50 - lately.Outcomes[model.ClientGaveUp]}
		lately.LetIn = 50 - lately.Outcomes[model.ClientGaveUp]
		l.Lately.Delta["PassiveOpens"] = lately.LetIn
		l.Lately.Losses.AbandonedRequests = 20
		l.Connections.Accepted, l.Connections.Phases = 1, [model.NumPhases]int{model.ClientClosed: 1}
		l.Verdict.Answer.Do = []model.Step{{To: "10", Limit: "max_connections"}}
		load, ok := Measure(l, s)
		require.True(t, ok, tr.at)
		require.Regexp(t, `^with 10 connections all are served, the slowest after 0.[56] s; now (9\d|100) % are turned away$`, load.Verdict(l.Verdict).Answer.Do[0].Effect, tr.at)
	}
}

// The executor's queue is full, and rejects at once: more threads serve them, a longer queue has them wait as long as they last.
func TestEffectWhereTheExecutorRejects(t *testing.T) {
	tr := overloaded(func(in *plan.Input) {
		in.Threads, in.MaxQueue, in.MaxConnections, in.AcceptCount = 4, 4, 8192, 100
		in.ServiceTime, in.Rate, in.ConnectTimeout = 300*time.Millisecond, 20, 900*time.Millisecond
	})
	s, l := tr.seen(t)
	lately := l.Lately.Losses.Clients
	lost := lately.Outcomes[model.ClientGaveUp]
	lately.Outcomes[model.ClientGaveUp] = 0
	lately.Answers = model.ClientAnswers{Known: true, Answered: 200 - lost, Unanswered: lost}
	lately.LetIn = 200
	l.Lately.Delta["PassiveOpens"] = 200
	l.Connector.MaxQueue = &model.Setting[int]{Value: 4}
	l.Verdict.Cause = model.CauseExecutorQueue
	l.Verdict.Answer.Do = []model.Step{{To: "8", Limit: "max_threads"}, {To: "6", Limit: "executor_queue"}, {To: "10", Limit: "executor_queue"}}
	load, ok := Measure(l, s)
	require.True(t, ok)
	do := l.Verdict.Answer.Do
	require.Regexp(t, `^with 8 threads all are served, the slowest after 0.[34] s; now 3\d % are turned away$`, alone(&load, do[0]))
	require.Empty(t, alone(&load, do[2]), "whether they wait for a second is not known")
	require.Regexp(t, `^with a queue of 6 in front of the threads nearly as many are turned away as now: 3\d %$`, alone(&load, do[1]))
	require.Equal(t, "not needed for this load once step 1 is done", load.Verdict(l.Verdict).Answer.Do[1].Effect)
	l.Connector.MaxQueue.Value = 0
	_, ok = Measure(l, s)
	require.False(t, ok, "a queue of none is not simulated")
}
