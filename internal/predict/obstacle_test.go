package predict

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// keptAway is a server that rests, of whose clients of ten seconds half have an outcome and half are served.
func keptAway(cause model.Cause, outcome model.ClientOutcome, step model.Step) (*model.Snapshot, *model.Listener) {
	s, l := refused()
	c := l.Losses.Clients
	c.Begun, c.LetIn, c.Outcomes = 100, 50, [model.NumClientOutcomes]uint64{model.ClientConnected: 50}
	c.Outcomes[outcome] = 50
	c.Answers.Answered = 50
	l.Lately.Losses.Burst = 0
	l.Verdict.Cause, l.Verdict.Answer.Do = cause, []model.Step{step}
	return s, l
}

func elsewhere() (*model.Snapshot, *model.Listener) {
	s, l := keptAway(model.CauseListensElsewhere, model.ClientRefused, model.Step{Setting: "address", From: "127.0.0.1", To: "0.0.0.0", Limit: reading.LimitAddress})
	l.Losses.Clients.RefusedAt = netip.MustParseAddrPort("10.77.0.1:8080")
	return s, l
}

func ruledOut() (*model.Snapshot, *model.Listener) {
	return keptAway(model.CauseBeforeListener, model.ClientGaveUp, model.Step{Command: "nft -a list chain inet firewall input", Limit: reading.LimitRule})
}

func paused() (*model.Snapshot, *model.Listener) {
	s, l := keptAway(model.CauseJVMPause, model.ClientGaveUp, model.Step{Text: "a larger heap", Limit: reading.LimitPause})
	l.Lately.Losses.DroppedPackets = 50
	l.Lately.Losses.By = []model.Drops{{DropKey: model.DropKey{Cause: model.CauseJVMPause}, Packets: 50}}
	return s, l
}

func TestEffectOfAnotherAddress(t *testing.T) {
	s, l := elsewhere()
	require.Equal(t, "who asks there is served; now 50 % are refused", saidOf(t, s, l))

	c := l.Losses.Clients // nobody asks the address that is listened on: how long a request takes is not known
	c.Outcomes[model.ClientConnected], c.Begun, c.LetIn, c.Answers.Answered, c.Responses = 0, 0, 0, 0, model.FirstResponses{}
	require.Equal(t, "who asks there is let in; now 100 % are refused", saidOf(t, s, l))

	l.Lately = nil // a snapshot alone
	s.Interval = 4 * time.Second
	require.Equal(t, "who asks there is let in; now 100 % are refused", saidOf(t, s, l))
}

func TestEffectWithoutARule(t *testing.T) {
	s, l := ruledOut()
	require.Equal(t, "without it all are served; now 50 % are turned away", saidOf(t, s, l))
	l.Losses.Clients.Responses.Sum = 30 // six seconds each: twice as long is more than they wait
	require.Equal(t, "without it all are let in; now 50 % are turned away", saidOf(t, s, l))
	l.Verdict.Answer.Do = append(l.Verdict.Answer.Do, model.Step{Command: "conntrack -S"})
	require.Empty(t, saidOf(t, s, l), "another place drops them, too")
}

// Who gives up is known some seconds later.
func TestEffectIsCountedAgain(t *testing.T) {
	s, l := ruledOut()
	l.ID.Address = netip.MustParseAddrPort("0.0.0.0:8080")
	c := l.Losses.Clients
	c.Outcomes[model.ClientGaveUp], c.Arrivals.First = 10, 9*time.Second
	var e Effects
	at := func(seconds time.Duration) string {
		now := *s
		now.Time = s.Time.Add(seconds * time.Second)
		now.Listeners = []model.Listener{*l}
		return e.Snapshot(&now).Listeners[0].Verdict.Answer.Do[0].Effect
	}
	require.Equal(t, "without it all are served; now 16 % are turned away", at(0))
	c.Outcomes[model.ClientGaveUp], c.Arrivals.First = 50, 20*time.Second
	require.Equal(t, "without it all are served; now 16 % are turned away", at(1))
	require.Equal(t, "without it all are served; now 50 % are turned away", at(3))
}

func TestEffectWithoutPauses(t *testing.T) {
	s, l := paused()
	require.Equal(t, "without the pauses all are served; now 50 % are turned away", saidOf(t, s, l))
	l.AcceptQueue.Length = 1
	require.NotEmpty(t, saidOf(t, s, l), "a queue is there in a pause")
	l.Lately.Losses.By = []model.Drops{
		{DropKey: model.DropKey{Cause: model.CauseJVMPause}, Packets: 30},
		{DropKey: model.DropKey{Cause: model.CauseAcceptQueue}, Packets: 20},
	}
	require.NotEmpty(t, saidOf(t, s, l), "the queue is full for a moment after a pause, too")
	l.Lately.Losses.By[0].Packets, l.Lately.Losses.By[1].Packets = 20, 30
	require.Empty(t, saidOf(t, s, l), "most packets were dropped for a cause that is not known")
	l.Lately.Losses.By = l.Lately.Losses.By[:1]
	l.Lately.Losses.By[0].Packets = 50
	l.Connections.Reset = new(1)
	require.NotEmpty(t, saidOf(t, s, l), "one of the threads may work for a client that has reset")
	l.Process = &model.Process{Stopped: true}
	require.Equal(t, "once it runs again all are served; now 50 % are turned away", saidOf(t, s, l))

	saysNothing(t, paused, map[string]func(*model.Listener){
		"most packets were dropped for another cause":              func(l *model.Listener) { l.Lately.Losses.By[0].Cause = model.CauseSlowAccept },
		"the threads are busy":                                     func(l *model.Listener) { l.Connections.Phases[model.InService] = 40 },
		"half of the threads may work for clients that have reset": func(l *model.Listener) { l.Connections.Reset = new(40) },
		"how long a request takes is not known": func(l *model.Listener) {
			l.Losses.Clients.Responses, l.Losses.Clients.Answers.Answered = model.FirstResponses{}, 3
		},
		"clients have just begun to come": func(l *model.Listener) { l.Losses.Clients.Arrivals.First = 9 * time.Second },
	})
}

func TestNothingIsSaidOfAnObstacle(t *testing.T) {
	changes := map[string]func(*model.Listener){
		"clients stand in the queue":       func(l *model.Listener) { l.AcceptQueue.Length = 1 },
		"threads are busy":                 func(l *model.Listener) { l.Connections.Phases[model.InService] = 40 },
		"connections are taken":            func(l *model.Listener) { l.Connections.Accepted = 5000 },
		"others leave without an answer":   func(l *model.Listener) { l.Losses.Clients.Answers.Unanswered = 20 },
		"a flood":                          func(l *model.Listener) { l.Losses.Clients.Flood = &model.ClientFlood{} },
		"packets were not read":            func(l *model.Listener) { l.Losses.Clients.PacketsLost = 1 },
		"the limits are not known":         func(l *model.Listener) { l.Connector.MaxThreads = nil },
		"it is over":                       func(l *model.Listener) { l.Recent.Over = true },
		"nobody is turned away":            func(l *model.Listener) { l.Losses.Clients.Outcomes = [model.NumClientOutcomes]uint64{} },
		"the step has no part in it":       func(l *model.Listener) { l.Verdict.Answer.Do[0].Limit = reading.LimitCookies },
		"what keeps them away has no step": func(l *model.Listener) { l.Verdict.Answer.Do[0].Limit = "" },
	}
	t.Run("address", func(t *testing.T) { saysNothing(t, elsewhere, changes) })
	t.Run("rule", func(t *testing.T) { saysNothing(t, ruledOut, changes) })
}

// Scenario B3: outgoing connections that are short.
func TestEffectOfMorePorts(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	l := model.Listener{
		ID: model.ListenerID{NetNS: hostNS, Address: netip.MustParseAddrPort("0.0.0.0:8080")}, Members: 1, AcceptQueue: &model.AcceptQueue{Limit: 1},
		Limits:  []model.Limit{{Name: reading.StageEphemeralPorts, Used: 100, Max: 100}},
		Process: &model.Process{Busiest: &model.Destination{Ports: 100, TimeWait: 98}},
		Verdict: model.Verdict{Status: model.StatusWarning, Cause: model.CauseEphemeralPorts, Answer: model.Answer{Do: []model.Step{
			{Text: "a pool"}, {To: "1", Limit: reading.LimitReuse}, {To: "1024-65535", Limit: reading.LimitPorts},
		}}},
	}
	s := &model.Snapshot{Time: at, Listeners: []model.Listener{l}}
	var e Effects
	do := e.Snapshot(s).Listeners[0].Verdict.Answer.Do
	require.Empty(t, do[0].Effect)
	require.Equal(t, "there are ports for 100 new connections a second to it; now for 1.7", do[1].Effect)
	require.Equal(t, "there are ports for 1075 new connections a second to it; now for 1.7", do[2].Effect)

	l.Process.Busiest.Reusable = 1 // others can be taken already
	_, known := Measure(&l, s)
	require.False(t, known)
	l.Process.Busiest = &model.Destination{Ports: 100, TimeWait: 60} // the others last for as long as their requests
	_, known = Measure(&l, s)
	require.False(t, known)
}
