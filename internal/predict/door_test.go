package predict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// refused is a look back of ten seconds at a server that rests, where 100 clients come at once every second and seven
// of them are let in: a queue of 1, as measured on a real Tomcat.
func refused() (*model.Snapshot, *model.Listener) {
	c := &model.Clients{Observed: 20 * time.Second}
	c.Begun, c.LetIn = 1000, 70
	c.Outcomes[model.ClientConnected], c.Outcomes[model.ClientGaveUp] = 70, 930
	c.Answers = model.ClientAnswers{Known: true, Answered: 70}
	c.Responses.Count, c.Responses.Sum = 5, .1
	c.Arrivals = &model.Arrivals{Clients: 2000, First: 20 * time.Second}
	at := time.Unix(1_700_000_000, 0)
	l := &model.Listener{
		ID: model.ListenerID{NetNS: hostNS}, Members: 1, AcceptQueue: &model.AcceptQueue{Limit: 1}, Connections: &model.Connections{},
		Connector: &model.Connector{
			MaxThreads: &model.Setting[int]{Value: 50}, MaxConnections: &model.Setting[int]{Value: 8192}, AcceptCount: &model.Setting[int]{Value: 1},
		},
		Losses: &model.Losses{Clients: c}, Recent: &model.Recent{Latest: at.Add(-20 * time.Second)},
		Verdict: model.Verdict{Status: model.StatusLosing, Cause: model.CauseSlowAccept, Answer: model.Answer{Do: []model.Step{
			{Setting: "acceptCount", From: "1", To: "150", Limit: reading.StageAcceptQueue},
		}}},
	}
	l.Lately = &model.Lately{Span: 10 * time.Second, Losses: model.Losses{Clients: c, Burst: 98}}
	return &model.Snapshot{Time: at, NetNS: []model.NetNS{{ID: hostNS, Sysctl: map[string]int{"somaxconn": 4096, "tcp_syncookies": 1}}}}, l
}

func saidOf(t *testing.T, s *model.Snapshot, l *model.Listener) string {
	t.Helper()
	load, ok := Measure(l, s)
	if !ok {
		return ""
	}
	return load.Verdict(l.Verdict).Answer.Do[0].Effect
}

// A balancer's checks beside the clients change nothing of what is said: they ask for no answer.
func TestEffectBesideChecks(t *testing.T) {
	s, l := refused()
	want := saidOf(t, s, l)
	c := l.Losses.Clients
	c.Begun, c.LetIn, c.Answers.Checks = c.Begun+100, c.LetIn+100, 100
	c.Outcomes[model.ClientConnected] += 100
	require.Equal(t, want, saidOf(t, s, l))

	s, l = overloaded(nil).seen(t)
	with := func(l *model.Listener, checks uint64) Load {
		c := l.Lately.Losses.Clients
		c.Begun, c.LetIn, c.Outcomes[model.ClientConnected] = c.Begun+checks, c.LetIn+checks, c.Outcomes[model.ClientConnected]+checks
		c.Answers = model.ClientAnswers{Known: true, Answered: 40, Checks: checks}
		load, ok := Measure(l, s)
		require.True(t, ok)
		return load
	}
	require.InDelta(t, with(l, 0).Rate, with(l, 50).Rate, .01)
}

// saysNothing holds that each change of a load leaves nothing to be said of it.
func saysNothing(t *testing.T, load func() (*model.Snapshot, *model.Listener), changes map[string]func(*model.Listener)) {
	t.Helper()
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			s, l := load()
			change(l)
			require.Empty(t, saidOf(t, s, l))
		})
	}
}

// Scenario I4: more come at once than the accept queue holds.
func TestEffectOfALongerQueue(t *testing.T) {
	s, l := refused()
	require.Equal(t, "with a queue of 151, once started again, all are served; now 93 % are turned away", saidOf(t, s, l))
	l.Verdict.Answer.Do[0].To = "50"
	require.Regexp(t, "^with a queue of 51, once started again, (49|50|51) % are turned away; now 93 % are turned away$", saidOf(t, s, l))
	l.Verdict.Answer.Do[0].To = "2"
	require.Equal(t, "with a queue of 3, once started again, nearly as many are turned away as now: 93 %", saidOf(t, s, l))
	l.Verdict.Answer.Do[0].To, s.NetNS[0].Sysctl["somaxconn"] = "150", 1
	require.Regexp(t, "nearly as many", saidOf(t, s, l), "the kernel holds it short")

	s, l = refused() // A8
	s.NetNS[0].Sysctl["somaxconn"], l.Connector.AcceptCount.Value = 1, 500
	l.Verdict.Cause = model.CauseBacklogClamped
	l.Verdict.Answer.Do = []model.Step{{Setting: "net.core.somaxconn", From: "1", To: "500", Limit: reading.LimitSomaxconn}}
	require.Equal(t, "with a queue of 501, once started again, all are served; now 93 % are turned away", saidOf(t, s, l))
	l.Connector.AcceptCount = nil
	require.Empty(t, saidOf(t, s, l), "acceptCount is not known")
}

// A flood of SYNs beside clients, without SYN cookies.
func TestEffectOfSynCookies(t *testing.T) {
	synFull := func() (*model.Snapshot, *model.Listener) {
		s, l := refused()
		s.NetNS[0].Sysctl["tcp_syncookies"] = 0
		l.AcceptQueue.Limit = 16
		l.Verdict.Cause = model.CauseSynBacklog
		l.Verdict.Answer.Do = []model.Step{{Setting: "net.ipv4.tcp_syncookies", From: "0", To: "1", Limit: reading.LimitCookies}}
		return s, l
	}
	s, l := synFull()
	require.Equal(t, "with SYN cookies all that answer are served; now 93 % are turned away", saidOf(t, s, l))
	l.Losses.Clients.Responses = model.FirstResponses{}
	require.Equal(t, "with SYN cookies all that answer are served; now 93 % are turned away", saidOf(t, s, l), "by who is inside")
	l.Losses.Clients.Answers.Answered = 4
	require.Empty(t, saidOf(t, s, l), "how long a request takes is not known")
	s, l = synFull()
	l.Losses.Clients.Responses.Sum = 2.5 // half a second each: 100 a second want 50 threads
	require.Empty(t, saidOf(t, s, l), "there may be too few threads for all")
}

func TestNothingIsSaidOfAQueue(t *testing.T) {
	saysNothing(t, refused, map[string]func(*model.Listener){
		"clients stand in it":          func(l *model.Listener) { l.AcceptQueue.Length = 1 },
		"threads are busy":             func(l *model.Listener) { l.Connections.Phases[model.InService] = 40 },
		"connections are taken":        func(l *model.Listener) { l.Connections.Accepted = 5000 },
		"a flood":                      func(l *model.Listener) { l.Losses.Clients.Flood = &model.ClientFlood{} },
		"it has just begun":            func(l *model.Listener) { l.Losses.Clients.Arrivals.First = 12 * time.Second },
		"nobody is turned away":        func(l *model.Listener) { l.Losses.Clients.Outcomes[model.ClientGaveUp] = 0 },
		"more fit into it than got in": func(l *model.Listener) { l.AcceptQueue.Limit = 60 },
		"kept connections": func(l *model.Listener) {
			l.Connections.Accepted, l.Connections.Phases[model.Idle] = 20, 20
		},
		"TLS": func(l *model.Listener) { l.Connector.TLS = true },
	})
}

// starved is a server of whose clients none has an answer: a request takes long for want of CPU time.
func starved(t *testing.T) (*model.Snapshot, *model.Listener) {
	t.Helper()
	tr := overloaded(func(in *plan.Input) {
		in.Threads, in.MaxConnections, in.AcceptCount = 20, 8192, 100
		in.ServiceTime, in.BackendConnections, in.BackendTime = time.Millisecond, 1, 100*time.Millisecond
		in.Rate, in.ConnectTimeout, in.ClientTimeout = 20, 900*time.Millisecond, 3*time.Second
	})
	s, l := tr.seen(t)
	lately := l.Lately.Losses.Clients
	lately.Outcomes[model.ClientGaveUp] = 0
	lately.LetIn, lately.Begun = 200, 200
	lately.Answers = model.ClientAnswers{Known: true, Unanswered: 200}
	l.Lately.Losses.AbandonedRequests = 100
	l.Connections.Phases[model.ClientClosed] = l.Connections.Accepted - 60
	l.Connections.Phases[model.Waiting] = 40
	l.Connections.Abandoned = l.Connections.Phases[model.ClientClosed]
	return s, l
}

// Scenario D2: the CPU limit decides how many are served.
func TestEffectOfMoreCPU(t *testing.T) {
	s, l := starved(t)
	l.Process = &model.Process{CPULimit: new(.1)}
	l.Verdict.Cause = model.CauseCPUThrottled
	l.Verdict.Answer.Do = []model.Step{{Setting: "CPU limit", From: "0.1", To: "0.3", Limit: reading.LimitCPU}}
	require.Regexp(t, `^with 0.3 CPUs all are served; now (9\d|100) % are turned away$`, saidOf(t, s, l))
	l.Verdict.Answer.Do[0].To = "0.15"
	require.Regexp(t, `^with 0.1[5]? CPUs nearly as many are turned away as now`, saidOf(t, s, l))
	l.Verdict.Answer.Do[0] = model.Step{To: "200", Limit: reading.StageMaxThreads}
	require.Empty(t, saidOf(t, s, l), "more threads wait for the same CPU")
	l.Process.CPULimit = nil
	require.Empty(t, saidOf(t, s, l))
}

// Scenario D2: others want the CPU, too.
func TestEffectOfMoreCPUThanOthersLeave(t *testing.T) {
	s, l := starved(t)
	l.Verdict.Cause = model.CauseCPUSaturated
	l.Verdict.Answer.Do = []model.Step{{Setting: "CPUs that it gets", From: "0.12", To: "0.4", Limit: reading.LimitCPU}}
	require.Regexp(t, `^with 0.4 CPUs all are served; now (9\d|100) % are turned away$`, saidOf(t, s, l))
	l.Verdict.Answer.Do = []model.Step{{Text: "Give it more"}, {To: "200", Limit: reading.StageMaxThreads}}
	require.Empty(t, saidOf(t, s, l), "how much it gets is not known")
}
