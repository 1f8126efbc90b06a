package loadtest_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/loadtest"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// down is a second in which nothing listened, and these were refused.
func (s *script) down(refused int) {
	s.at = s.at.Add(time.Second)
	s.refused += uint64(refused)
	snap := s.snapshot()
	l := model.Listener{
		ID: model.ListenerID{NetNS: 1}, Port: s.listener.Port, Expected: true, Losses: &model.Losses{Clients: &model.Clients{}},
		Verdict: model.Verdict{Status: model.StatusDown, Cause: model.CauseNoListener},
	}
	snap.Retired = []model.RetainedTotals{{ID: s.listener.ID, Totals: snap.Listeners[0].Totals}}
	snap.Listeners = []model.Listener{l}
	s.recorder.Observe(snap)
}

// A server that is restarted is one listener of the run: who was refused meanwhile is counted, for how long
// nothing listened is known, and that is no limit.
func TestARestart(t *testing.T) {
	s := begin()
	s.seconds(6, 40, 2)
	for range 4 {
		s.down(50)
	}
	s.listener.Connector = nil // of a new process it takes a moment
	s.second(40, 2)
	s.listener.Connector = &model.Connector{MaxThreads: setting(4), MaxConnections: setting(20)}
	s.seconds(4, 40, 2)
	r := s.result(t)
	require.EqualValues(t, 200, r.Clients.Outcomes[model.ClientRefused])
	require.EqualValues(t, 200, r.Clients.TurnedAway)
	require.EqualValues(t, 640, r.Clients.Offered)
	require.EqualValues(t, 440, r.Clients.Served)
	require.Zero(t, r.Clients.Open)
	require.Equal(t, 4*time.Second, r.Down)
	require.Equal(t, model.StatusDown, r.Status)
	require.Equal(t, model.CauseNoListener, r.Cause)
	require.True(t, r.Latest.Listening(), "named as the listener that it is")
	require.Contains(t, r.Worst.Verdict.Answer.Why, "listened again later")
	require.Len(t, r.Worst.Verdict.Answer.Do, 2)
	require.Nil(t, r.First)
	require.False(t, r.Knee.Reached, "clients are refused at any rate")
	require.InDelta(t, 40, r.Knee.Rate, 1)
	for _, p := range r.Points {
		require.LessOrEqual(t, p.Answered, uint64(80))
	}
}

// A limit that turned more clients away is the cause, and that nothing listened is said all the same.
func TestARestartBesideALimit(t *testing.T) {
	s := begin()
	for range 5 {
		s.overloaded(40, 20)
	}
	s.listener.Verdict = model.Verdict{}
	s.down(3)
	s.second(40, 2)
	r := s.result(t)
	require.Equal(t, model.CauseMaxConnections, r.Cause)
	require.Equal(t, model.StatusDown, r.Status)
	require.Equal(t, time.Second, r.Down)
	require.EqualValues(t, 103, r.Clients.TurnedAway)
}

// A server that was found, and closes with the test that started it, is none that is down: nobody was refused.
func TestAServerThatMayClose(t *testing.T) {
	closes := func(change func(*loadtest.Recorder), refused int) *loadtest.Result {
		s := begin()
		change(s.recorder)
		s.seconds(6, 40, 2)
		for range 3 {
			s.down(refused)
		}
		return s.result(t)
	}
	found := func(r *loadtest.Recorder) { r.Found = true }
	require.Equal(t, model.StatusOK, closes(found, 0).Status)
	require.Zero(t, closes(found, 0).Down)
	require.Equal(t, model.StatusDown, closes(found, 1).Status)
	require.Equal(t, model.StatusOK, closes(func(r *loadtest.Recorder) { r.Ended = 6 * time.Second }, 0).Status, "the load is over")
	require.Equal(t, model.StatusDown, closes(func(*loadtest.Recorder) {}, 0).Status, "its port was asked for")
}

// Who asks before a server listens for the first time is refused by nobody else.
func TestAServerThatStartsLate(t *testing.T) {
	s := begin()
	empty := s.snapshot()
	empty.Listeners = []model.Listener{{ID: model.ListenerID{NetNS: 1}, Port: 8080, Expected: true, Verdict: model.Verdict{Status: model.StatusDown, Cause: model.CauseNoListener}}}
	s.recorder = loadtest.NewRecorder(empty)
	for range 3 {
		s.down(2)
	}
	s.seconds(6, 40, 2)
	r := s.result(t)
	require.EqualValues(t, 6, r.Clients.Outcomes[model.ClientRefused])
	require.EqualValues(t, 240, r.Clients.Served)
	require.Equal(t, 4*time.Second, r.Down)
	require.Equal(t, "The load began before the server listened.", r.Worst.Verdict.Answer.Why)
}

// Which of two listeners of a port continues is always the same.
func TestTwoListenersOfAPortClose(t *testing.T) {
	continues := func() string {
		at := time.Unix(1000, 0)
		snapshot := func(listeners ...model.Listener) *model.Snapshot {
			at = at.Add(time.Second)
			return &model.Snapshot{Time: at, Listeners: listeners}
		}
		var both []model.Listener
		for _, address := range []string{"10.0.0.1:8080", "10.0.0.2:8080"} {
			l := model.Listener{ID: model.ListenerID{NetNS: 1, Address: netip.MustParseAddrPort(address)}, Port: 8080}
			both = append(both, l)
		}
		r := loadtest.NewRecorder(snapshot(both...))
		r.Observe(snapshot(both...))
		r.Observe(snapshot(model.Listener{ID: model.ListenerID{NetNS: 1}, Port: 8080, Expected: true, Verdict: model.Verdict{Status: model.StatusDown, Cause: model.CauseNoListener}}))
		courses := r.Courses()
		require.Len(t, courses, 2)
		return courses[0].Latest.ID.String()
	}
	first := continues()
	for range 50 {
		require.Equal(t, first, continues())
	}
}
