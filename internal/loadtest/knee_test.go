package loadtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/loadtest"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// course is a server of some threads, a second each: clients come, wait, and are answered.
type course struct {
	*script
	capacity, room int // answered a second; waiting for a thread
	waiting        int
	blind          bool // no verdict is given
}

func served(capacity, room int) *course {
	return &course{script: begin(), capacity: capacity, room: room}
}

// second is one in which as many come; those that find no room give up.
func (c *course) second(came int) {
	c.waiting += came
	answered := min(c.waiting, c.capacity)
	c.waiting -= answered
	lost := max(0, c.waiting-c.room)
	c.waiting -= lost
	v := model.Verdict{}
	switch {
	case lost > 0:
		v = model.Verdict{Status: model.StatusLosing, Cause: model.CauseMaxConnections}
	case c.waiting > 0:
		v = model.Verdict{Status: model.StatusSaturated, Cause: model.CauseMaxThreads}
	}
	if c.blind {
		v = model.Verdict{}
	}
	c.listener.Verdict = v
	t := c.listener.Totals.Clients
	t.Outcomes[model.ClientGaveUp] += uint64(lost)
	c.listener.Totals.Dropped[model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}] += uint64(lost)
	t.Outcomes[model.ClientConnected] += uint64(came - lost)
	t.Answers.Known, t.Answers.Answered = true, t.Answers.Answered+uint64(answered)
	c.at = c.at.Add(time.Second)
	busy := min(4, (answered*4+c.capacity-1)/c.capacity)
	n := &model.Connections{Accepted: busy + c.waiting}
	n.Phases[model.InService], n.Phases[model.Waiting] = busy, c.waiting
	c.listener.Connections = n
	c.recorder.Observe(c.snapshot())
}

// seconds are as many like that.
func (c *course) seconds(n, came int) {
	for range n {
		c.second(came)
	}
}

func kneeOf(t *testing.T, c *course, slo time.Duration) *loadtest.Knee {
	t.Helper()
	results := c.recorder.Results(slo)
	require.Len(t, results, 1)
	require.NotNil(t, results[0].Knee)
	return results[0].Knee
}

// A rate that rises fast fills the queues far beyond what is served for long.
func TestKneeOfARisingRate(t *testing.T) {
	c := served(40, 100)
	for rate := 10; rate <= 80; rate += 2 {
		c.second(rate)
	}
	k := kneeOf(t, c, 0)
	require.True(t, k.Reached)
	require.False(t, k.Late)
	require.Equal(t, model.CauseMaxConnections, k.Cause)
	require.InDelta(t, 40, k.Rate, .5)
	require.Greater(t, k.Beyond, 44.)
	late := kneeOf(t, c, time.Second)
	require.True(t, late.Late, "clients wait longer than a second before any is lost")
	require.Equal(t, model.CauseMaxThreads, late.Cause)
	require.InDelta(t, 40, late.Rate, .5)
}

// What ended it may be known seconds later only.
func TestKneeWhoseCauseIsKnownLater(t *testing.T) {
	c := served(40, 10)
	c.blind = true
	c.seconds(6, 60)
	require.Equal(t, model.CauseNone, kneeOf(t, c, 0).Cause)
	c.blind = false
	c.second(60)
	require.Equal(t, model.CauseMaxConnections, kneeOf(t, c, 0).Cause)
}

// What is not reached is not stated: all were served, and some waited.
func TestKneeNotReached(t *testing.T) {
	c := served(40, 1000)
	c.seconds(10, 30)
	k := kneeOf(t, c, time.Second)
	require.False(t, k.Reached)
	require.InDelta(t, 30, k.Rate, .1)
	require.Zero(t, k.Error)
}

// Of clients that come at once the knee is a number: of those with room, those answered in time.
func TestKneeOfABurst(t *testing.T) {
	c := served(10, 30)
	c.second(60)
	c.seconds(5, 0)
	k := kneeOf(t, c, 0)
	require.True(t, k.Reached)
	require.Equal(t, 40, k.Burst.Clients, "10 answered, 30 with room")
	require.Equal(t, model.CauseMaxConnections, k.Cause)
	k = kneeOf(t, c, 2500*time.Millisecond)
	require.Equal(t, 30, k.Burst.Clients, "2.5 s from the middle of the second in which they came")
	require.Equal(t, 5, k.Burst.Error, "half of what is answered in a second")
	require.True(t, k.Late)
}

// Far too many come from the first second on, and the first is lost some seconds later.
func TestKneeIsNoMoreThanWasAnswered(t *testing.T) {
	c := served(20, 1500)
	c.blind = true
	c.seconds(12, 300)
	k := kneeOf(t, c, 0)
	require.True(t, k.Reached)
	require.InDelta(t, 20, k.Rate, 1)
}

// Packets that were dropped when all came at once and whose clients got in weigh less than clients that were
// turned away.
func TestWorstIsWhatTurnedClientsAway(t *testing.T) {
	s := begin()
	look := func(cause model.Cause, dropped, unanswered uint64) {
		s.listener.Verdict = model.Verdict{Status: model.StatusLosing, Cause: cause}
		s.listener.Totals.Dropped[model.DropKey{Cause: cause, Packet: model.PacketSYN}] += dropped
		totals := s.listener.Totals.Clients
		totals.Outcomes[model.ClientConnected] += unanswered
		totals.Answers.Known, totals.Answers.Unanswered = true, totals.Answers.Unanswered+unanswered
		s.at = s.at.Add(time.Second)
		s.recorder.Observe(s.snapshot())
	}
	look(model.CauseSlowAccept, 800, 0)
	look(model.CauseSlowAccept, 100, 0)
	look(model.CauseMaxThreads, 0, 600)
	results := s.recorder.Results(0)
	require.Equal(t, model.CauseMaxThreads, results[0].Cause)
}

// Of whom it is not known whether they had an answer nobody says that they were served.
func TestUnclearIsNotServed(t *testing.T) {
	c := served(25, 1000)
	c.second(30)
	got := c.recorder.Results(0)[0].Clients
	require.EqualValues(t, 25, got.Served)
	require.EqualValues(t, 5, got.Open, "they still wait")
	c.listener.Totals.Clients.Answers.Unclear, c.waiting = 5, 0
	c.second(0)
	got = c.recorder.Results(0)[0].Clients
	require.EqualValues(t, 25, got.Served)
	require.Zero(t, got.Open)
}

// A twentieth of the clients without an answer is a loss, also where no snapshot was judged so.
func TestTurnedAwayIsLosing(t *testing.T) {
	c := served(10, 100)
	c.second(30)
	c.second(0)
	c.listener.Totals.Clients.Answers.Unanswered, c.waiting, c.blind = 10, 0, true
	c.second(0)
	require.Equal(t, model.StatusLosing, c.recorder.Results(0)[0].Status)
}

// Clients that leave when the limit that they waited for is empty again were lost by it; that they were lost stands.
func TestCauseOfThoseThatLeaveLater(t *testing.T) {
	c := served(10, 100)
	c.second(30)
	c.second(0)
	c.blind = true
	c.listener.Totals.Clients.Answers.Unanswered, c.waiting = 10, 0
	c.second(0)
	c.listener.Verdict = model.Verdict{Status: model.StatusLosing}
	c.at = c.at.Add(time.Second)
	c.recorder.Observe(c.snapshot())
	got := c.recorder.Results(0)[0]
	require.Equal(t, model.StatusLosing, got.Status)
	require.Equal(t, model.CauseMaxThreads, got.Cause)
	require.Zero(t, c.recorder.Open())
}

// What a limit a minute ago has to do with clients that are lost now is not known.
func TestCauseOfThoseLostMuchLater(t *testing.T) {
	c := served(10, 100)
	c.second(30)
	c.second(0)
	c.second(0)
	c.blind = true
	c.seconds(60, 1)
	c.listener.Totals.Clients.Answers.Unanswered = 40
	c.listener.Verdict = model.Verdict{Status: model.StatusLosing}
	c.at = c.at.Add(time.Second)
	c.recorder.Observe(c.snapshot())
	got := c.recorder.Results(0)[0]
	require.Equal(t, model.StatusLosing, got.Status)
	require.Equal(t, model.CauseNone, got.Cause)
}

// Nobody can have waited for longer than it took, however few were answered meanwhile.
func TestKneeIsNotLateBetweenTwoRounds(t *testing.T) {
	s := begin()
	for i := range 20 {
		s.listener.Verdict = model.Verdict{Status: model.StatusSaturated, Cause: model.CauseMaxThreads}
		n := 0
		switch i % 8 {
		case 6:
			n = 1
		case 7:
			n = 199
		}
		s.second(n, 200)
	}
	late := func(slo time.Duration) bool { return s.recorder.Results(slo)[0].Knee.Late }
	require.False(t, late(12*time.Second), "a request takes 8 s")
	require.True(t, late(4*time.Second))
}
