package loadtest_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/loadtest"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/plan"
	"github.com/tcpdiag/tcpdiag/internal/render/runreport"
)

// script publishes a snapshot a second of one listener.
type script struct {
	at       time.Time
	listener model.Listener
	opens    uint64
	recorder *loadtest.Recorder
	idle     int // connections between two requests
	refused  uint64
}

func begin() *script {
	s := &script{at: time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)}
	s.listener = model.Listener{
		ID: model.ListenerID{NetNS: 1, Address: netip.MustParseAddrPort("0.0.0.0:8080")}, Port: 8080,
		AcceptQueue: &model.AcceptQueue{Limit: 5}, Connections: &model.Connections{},
		Connector: &model.Connector{MaxThreads: setting(4), MaxConnections: setting(20)},
		Totals:    model.Totals{Dropped: map[model.DropKey]uint64{}, Clients: &model.ClientTotals{}},
		Losses:    &model.Losses{Clients: &model.Clients{}},
	}
	s.recorder = loadtest.NewRecorder(s.snapshot())
	return s
}

func setting(n int) *model.Setting[int] { return &model.Setting[int]{Value: n} }

func (s *script) snapshot() *model.Snapshot {
	l := s.listener
	dropped := make(map[model.DropKey]uint64)
	for k, n := range l.Totals.Dropped {
		dropped[k] = n
	}
	l.Totals.Dropped, l.Totals.Clients = dropped, new(*l.Totals.Clients)
	return &model.Snapshot{
		Time: s.at, Listeners: []model.Listener{l}, Targets: []model.Target{{Port: 8080, NetNS: 1, Refused: new(s.refused)}},
		NetNS: []model.NetNS{{ID: 1, Counters: model.Counters{"PassiveOpens": s.opens}, Sysctl: map[string]int{"tcp_syncookies": 1, "somaxconn": 4096}}},
	}
}

// second is one more, in which this many clients came and were answered, with busy of them in service.
func (s *script) second(clients, busy int) {
	s.at = s.at.Add(time.Second)
	t := s.listener.Totals.Clients
	t.Outcomes[model.ClientConnected] += uint64(clients)
	t.LetIn += uint64(clients)
	t.Answers.Known, t.Answers.Answered = true, t.Answers.Answered+uint64(clients)
	s.opens += uint64(clients)
	s.listener.Connections = &model.Connections{Accepted: busy + s.idle}
	s.listener.Connections.Phases[model.InService], s.listener.Connections.Phases[model.Idle] = busy, s.idle
	s.recorder.Observe(s.snapshot())
}

// seconds are as many like that.
func (s *script) seconds(n, clients, busy int) {
	for range n {
		s.second(clients, busy)
	}
}

// overloaded is one in which others gave up, each after a dropped packet.
func (s *script) overloaded(clients, gaveUp int) {
	s.listener.Verdict = model.Verdict{Status: model.StatusLosing, Cause: model.CauseMaxConnections}
	s.listener.Totals.Clients.Outcomes[model.ClientGaveUp] += uint64(gaveUp)
	s.listener.Totals.Dropped[model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}] += uint64(gaveUp)
	s.second(clients, 4)
}

func (s *script) result(t *testing.T) *loadtest.Result {
	t.Helper()
	results := s.recorder.Results(time.Second)
	require.Len(t, results, 1)
	return results[0]
}

func TestResultOfACalmRun(t *testing.T) {
	s := begin()
	s.seconds(10, 40, 2)
	r := s.result(t)
	require.EqualValues(t, 400, r.Clients.Offered)
	require.EqualValues(t, 400, r.Clients.Served)
	require.Zero(t, r.Clients.TurnedAway)
	require.Equal(t, model.StatusOK, r.Status)
	require.False(t, r.Lost())
	require.Nil(t, r.First)
	require.False(t, r.Knee.Reached, "nobody was lost: where the knee is is not known")
	require.InDelta(t, 40, r.Knee.Rate, .1)
	require.Zero(t, r.Knee.Beyond)
	require.Len(t, r.Points, 10)
	require.Equal(t, time.Duration(0), r.Points[0].At)
}

// Checks are no clients, in any number of a run. One is known when it has ended, be it a second later.
func TestChecksAreNotOffered(t *testing.T) {
	s := begin()
	totals := s.listener.Totals.Clients
	for i := range 10 {
		ended := uint64(7) // of those that began now, but for two that end in the next second
		if i > 0 {
			ended = 9
		}
		totals.Outcomes[model.ClientConnected] += 9
		totals.LetIn += 9
		totals.Answers.Checks += ended
		s.second(40, 2)
	}
	totals.Answers.Checks += 2
	s.second(40, 2)
	r := s.result(t)
	require.EqualValues(t, 440, r.Clients.Offered)
	require.EqualValues(t, 440, r.Clients.Served)
	require.EqualValues(t, 90, r.Clients.Answers.Checks)
	require.Zero(t, r.Clients.Open)
	var sum uint64
	for i := range r.Points {
		sum += r.Points[i].Offered
		require.InDelta(t, 40, r.Points[i].Offered, 2, i)
	}
	require.EqualValues(t, 440, sum)
	require.InDelta(t, 40, r.Knee.Rate, 2)
	require.Contains(t, runreport.Line(r.Course, 10*time.Second), "440 clients, 0 turned away")
}

// What comes from few addresses are their connections, as on the screen and in alerts, be it that nobody came for the last minute.
func TestConnectionsOfFewAddresses(t *testing.T) {
	s := begin()
	s.seconds(6, 40, 4)
	require.Contains(t, runreport.Line(s.result(t).Course, 6*time.Second), "240 clients, 0 turned away")
	s.listener.Losses.Clients.Proxies = []model.ClientSource{{Clients: 150}, {Clients: 60}}
	s.overloaded(40, 60)
	s.listener.Losses.Clients.Proxies, s.listener.Verdict = nil, model.Verdict{}
	s.second(0, 0)
	r := s.result(t)
	require.Contains(t, runreport.Line(r.Course, 8*time.Second), "340 connections, 60 turned away")
	l := &api.NewRun(s.recorder, []*loadtest.Result{r}).Listeners[0]
	require.Equal(t, 2, l.Clients.Proxies)
	require.Equal(t, "60 of 340 connections got no answer: 60 gave up connecting.", runreport.What(l))
}

func TestResultOfAnOverload(t *testing.T) {
	s := begin()
	s.seconds(6, 40, 4)
	for range 5 {
		s.overloaded(40, 20)
	}
	s.listener.Verdict = model.Verdict{}
	s.second(0, 0)
	r := s.result(t)
	require.EqualValues(t, 540, r.Clients.Offered)
	require.EqualValues(t, 100, r.Clients.TurnedAway)
	require.EqualValues(t, 100, r.Dropped)
	require.Equal(t, map[model.Cause]uint64{model.CauseMaxConnections: 100}, r.ByCause)
	require.Equal(t, model.StatusLosing, r.Status, "the worst of the run, not of its end")
	require.Equal(t, model.CauseMaxConnections, r.Cause)
	require.Equal(t, model.CauseMaxConnections, r.First.Cause)
	require.Equal(t, 6*time.Second, r.First.At)
	require.True(t, r.Knee.Reached)
	require.InDelta(t, 40, r.Knee.Rate, .1)
	require.InDelta(t, 44, r.Knee.Beyond, .1, "four seconds of 40 and the first of 60")

	require.NotNil(t, r.Settings, r.Unplanned)
	require.InDelta(t, .1, r.Settings.Load.ServiceTime.Seconds(), .001, "4 in service, 40 answered a second")
	require.InDelta(t, 66, r.Settings.Load.Rate, 1, "60 a second, and a tenth to spare")
	require.GreaterOrEqual(t, r.Settings.Limits.Threads, 6, "60 a second of 0.1 s each")
	require.Greater(t, r.Settings.Twice.Threads, r.Settings.Limits.Threads)
}

// Connections that are kept have more than one request each: nothing is simulated of them, and
// what is held at once is counted.
func TestSettingsForKeptConnections(t *testing.T) {
	s := begin()
	s.idle = 8
	s.seconds(6, 1, 2)
	r := s.result(t)
	require.True(t, r.Settings.Counted)
	require.Equal(t, plan.Limits{Threads: 2, MaxConnections: 10, AcceptCount: 5}, *r.Settings.Limits)
	require.Equal(t, 20, r.Settings.Twice.MaxConnections)
	require.True(t, r.Knee.KeepAlive)
	require.Equal(t, 10, r.Knee.Inside)
	s.listener.AcceptQueue.Length = 5
	s.second(1, 2)
	require.Equal(t, 10, s.result(t).Knee.Inside, "who is in the accept queue waits until one of them leaves")
}

// What ends a run and is no limit of the connector has no settings.
func TestNoSettingsForACPU(t *testing.T) {
	s := begin()
	for range 6 {
		s.listener.Verdict = model.Verdict{Status: model.StatusLosing, Cause: model.CauseCPUSaturated}
		s.second(40, 4)
	}
	r := s.result(t)
	require.Nil(t, r.Settings)
	require.Contains(t, r.Unplanned, "cpu_saturated")
}

// Without the tap clients are not counted, and nothing is made of packets.
func TestResultWithoutHandshakes(t *testing.T) {
	s := begin()
	s.listener.Totals.Clients = &model.ClientTotals{}
	untapped := func() *model.Snapshot {
		snap := s.snapshot()
		snap.Listeners[0].Totals.Clients, snap.Listeners[0].Losses = nil, nil
		return snap
	}
	r := loadtest.NewRecorder(untapped())
	for range 5 {
		s.at, s.opens = s.at.Add(time.Second), s.opens+7
		s.listener.Totals.Dropped[model.DropKey{Cause: model.CauseMaxConnections}] += 3
		r.Observe(untapped())
	}
	res := r.Results(time.Second)[0]
	require.Nil(t, res.Clients)
	require.EqualValues(t, 35, res.LetIn)
	require.EqualValues(t, 15, res.Dropped)
	require.True(t, res.Lost())
	require.False(t, res.Knee.Exact)
	require.Contains(t, res.Unplanned, "CAP_NET_RAW")
}

// A listener that comes within the run has all its counts from there; a restart of the same address
// takes nothing away.
func TestListenerOfTheRun(t *testing.T) {
	s := begin()
	empty := loadtest.NewRecorder(&model.Snapshot{Time: s.at})
	s.recorder = empty
	s.second(5, 1)
	s.second(5, 1)
	require.EqualValues(t, 10, s.result(t).Clients.Offered)
	s.listener.Totals.Clients = &model.ClientTotals{}
	s.second(5, 1)
	require.NotPanics(t, func() { s.result(t) })
}

// Longer runs are kept in wider points; no client is lost on the way.
func TestALongRunIsBounded(t *testing.T) {
	s := begin()
	const seconds = 9000
	s.seconds(seconds, 2, 1)
	r := s.result(t)
	require.LessOrEqual(t, len(r.Points), 3600)
	require.Equal(t, 4*time.Second, r.Width)
	var sum uint64
	for _, p := range r.Points {
		sum += p.Offered
	}
	require.EqualValues(t, 2*seconds, sum)
	require.InDelta(t, 2, r.Knee.Rate, .1)
}

// late makes a snapshot that shows everything since the latest one, which was longer ago than a second.
func (s *script) late(by time.Duration, clients, busy int) {
	s.at = s.at.Add(by)
	s.second(clients, busy)
}

// A busy machine's snapshots are late: a rate is by the time that has passed.
func TestLateSnapshots(t *testing.T) {
	s := begin()
	for range 6 {
		s.second(40, 4)
		s.late(600*time.Millisecond, 64, 4)
	}
	s.overloaded(20, 20)
	r := s.result(t)
	require.InDelta(t, 40, r.Knee.Rate, 2)
	require.InDelta(t, .1, r.Settings.Load.ServiceTime.Seconds(), .005)
	require.GreaterOrEqual(t, r.Settings.Limits.AcceptCount, 26, "those who come in 0.6 s, in which nothing may be accepted")
}

// Answered connections that are still held take places of maxConnections, and no thread.
func TestSettingsForConnectionsThatAreClosedLate(t *testing.T) {
	s := begin()
	s.seconds(12, 40, 4)
	threads := s.result(t).Settings.Limits
	s = begin()
	s.listener.Connector.MaxConnections = setting(200)
	for range 6 {
		s.idle = 0
		s.second(40, 4)
		s.idle = 1
		s.second(40, 4)
	}
	l := s.result(t).Settings
	require.False(t, l.Counted)
	require.InDelta(t, .0125, l.Load.Linger.Seconds(), .001, "half a connection, 40 a second")
	require.Equal(t, threads.Threads, l.Limits.Threads)
}

// Settings are for the slowest seconds, and not for the average.
func TestSettingsOfAServerThatIsSlowForAWhile(t *testing.T) {
	with := func(slow int) *loadtest.Settings {
		s := begin()
		s.listener.AcceptQueue.Limit = 100
		for i := range 15 {
			s.listener.AcceptQueue.Length = 10 + 3*i
			s.listener.Verdict = model.Verdict{Status: model.StatusSaturated, Cause: model.CauseMaxConnections}
			if i > 5 && i < 10 {
				s.second(slow, 4)
			} else {
				s.second(40, 4)
			}
		}
		return s.result(t).Settings
	}
	require.InDelta(t, .1, with(40).Load.ServiceTime.Seconds(), .001)
	require.InDelta(t, .133, with(30).Load.ServiceTime.Seconds(), .004, "3 of 4 are answered in the time")
}

// Who left at the end of the command was no more patient than it took: settings under which a client
// waits for longer than that serve nobody.
func TestSettingsForClientsWhoLeave(t *testing.T) {
	burst := func(ended time.Duration) *loadtest.Settings {
		s := begin()
		s.listener.Verdict = model.Verdict{Status: model.StatusLosing, Cause: model.CauseMaxConnections}
		totals := s.listener.Totals.Clients
		totals.Outcomes[model.ClientConnected] += 56
		s.second(4, 4)
		for range 3 {
			totals.Answers.Answered += 4
			s.second(0, 4)
		}
		totals.Answers.Unanswered += 44
		s.second(0, 4)
		s.recorder.Ended = ended
		r := s.recorder.Results(0)[0]
		require.NotNil(t, r.Settings, r.Unplanned)
		return r.Settings
	}
	patient, left := burst(0), burst(4*time.Second)
	require.Greater(t, patient.Load.ClientTimeout, 10*time.Second)
	require.Equal(t, 4*time.Second, left.Load.ClientTimeout)
	require.Greater(t, left.Limits.Threads, patient.Limits.Threads)
	require.GreaterOrEqual(t, left.Twice.Threads, 2*left.Limits.Threads-1, "the same patience")
}

// Of requests that began together none ends in most seconds: what is answered between two rounds says nothing of
// how long one takes.
func TestSettingsOfLongRequests(t *testing.T) {
	s := begin()
	s.listener.Connector.MaxThreads, s.listener.Connector.MaxConnections = setting(200), setting(200)
	s.listener.AcceptQueue.Limit = 300
	for i := range 42 {
		s.listener.Verdict = model.Verdict{Status: model.StatusSaturated, Cause: model.CauseMaxConnections}
		s.listener.AcceptQueue.Length = 301
		s.listener.Totals.Clients.Outcomes[model.ClientGaveUp] += 10
		ended := 0
		switch i % 8 {
		case 6:
			ended = 1
		case 7:
			ended = 199
		}
		s.second(ended, 200)
	}
	r := s.result(t)
	require.NotNil(t, r.Settings, r.Unplanned)
	require.InDelta(t, 8, r.Settings.Load.ServiceTime.Seconds(), 3)
}

// A test that ends before its requests do knows of the few that ended, and not how long one takes.
func TestNoSettingsOfATestThatIsTooShort(t *testing.T) {
	short := func(ended ...int) *loadtest.Result {
		s := begin()
		for _, n := range ended {
			s.listener.Verdict = model.Verdict{Status: model.StatusLosing, Cause: model.CauseMaxThreads}
			s.listener.Totals.Clients.Outcomes[model.ClientGaveUp] += 50
			s.listener.AcceptQueue.Length = 5
			s.second(n, 60)
		}
		return s.result(t)
	}
	r := short(0, 1, 0, 2, 0, 8)
	require.Nil(t, r.Settings)
	require.Equal(t, "how long a request takes is not known: of 60 in service at a time only 11 ended", r.Unplanned)
	r = short(0, 1, 0, 2, 0, 1)
	require.Nil(t, r.Settings)
	require.Contains(t, r.Unplanned, "only 4 ended")
	require.NotNil(t, short(0, 60, 0, 60, 0, 60).Settings)
}

// Five requests one after the other tell how long one takes, as none is in service when the test ends.
func TestSettingsOfAFewRequestsThatHaveAllEnded(t *testing.T) {
	few := func(last int) *loadtest.Result {
		s := begin()
		for i := range 5 {
			s.listener.Losses.Clients.Settling = 5 - i // all five have begun
			s.listener.Verdict = model.Verdict{Status: model.StatusSaturated, Cause: model.CauseMaxThreads}
			s.second(0, 1)
			s.second(0, 1)
			s.listener.Losses.Clients.Settling--
			s.second(1, 1)
		}
		s.second(0, last)
		return s.result(t)
	}
	r := few(0)
	require.NotNil(t, r.Settings, r.Unplanned)
	require.InDelta(t, 3, r.Settings.Load.ServiceTime.Seconds(), 0.3)
	require.Equal(t, "how long a request takes is not known: of 1 in service at a time only 5 ended", few(1).Unplanned)
}

// Clients that seemed to be lost for a moment, and were all answered, were not.
func TestNobodyWasLostAfterAll(t *testing.T) {
	run := func(unanswered uint64) *loadtest.Result {
		s := begin()
		for i := range 6 {
			s.listener.Verdict = model.Verdict{}
			if i == 3 {
				s.listener.Verdict = model.Verdict{Status: model.StatusLosing, Cause: model.CauseBeforeListener, Summary: "lost"}
			}
			s.second(40, 2)
		}
		s.listener.Totals.Clients.Outcomes[model.ClientConnected] += unanswered
		s.listener.Totals.Clients.Answers.Unanswered = unanswered
		s.second(40, 2)
		return s.result(t)
	}
	r := run(0)
	require.Equal(t, model.StatusOK, r.Status)
	require.Equal(t, model.CauseNone, r.Cause)
	require.Empty(t, r.Worst.Verdict.Summary)
	require.Equal(t, model.StatusLosing, run(1).Status)
	require.Equal(t, model.CauseBeforeListener, run(1).Cause)
}
