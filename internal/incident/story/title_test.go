package story

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// told is a story by the frames of some seconds.
type told struct {
	*Story
	at time.Time
}

func newTold() *told {
	h := recording.Header{Address: "[::]:8080", Host: "web-1", Began: time.Date(2026, 1, 2, 3, 12, 5, 0, time.UTC)}
	h.Base.Dropped = []model.Drops{{DropKey: model.DropKey{Cause: model.CauseSlowAccept, Packet: model.PacketSYN}, Packets: 5000}}
	return &told{&Story{Header: h, Summary: h.Summary(), Inside: -1}, h.Began}
}

// see adds a frame, some seconds after the one before.
func (s *told) see(seconds int, status model.Status, cause model.Cause, dropped map[model.Cause]uint64, turnedAway uint64) {
	s.at = s.at.Add(time.Duration(seconds) * time.Second)
	f := &recording.Frame{At: s.at, Counted: recording.Counted{Clients: &model.ClientTotals{}}}
	f.Listener.Verdict = model.Verdict{Status: status, Cause: cause, Summary: "It is " + string(cause) + "."}
	f.Counted.Clients.Outcomes[model.ClientGaveUp] = turnedAway
	for c, n := range dropped {
		if c == model.CauseSlowAccept {
			n += 5000 // before it began
		}
		f.Counted.Dropped = append(f.Counted.Dropped, model.Drops{DropKey: model.DropKey{Cause: c, Packet: model.PacketSYN}, Packets: n})
		f.Points = append(f.Points, recording.Point{At: s.at.Unix(), Status: status, Drops: uint32(n % 5000)})
	}
	if s.Summary.Frames == 0 {
		s.Worst = *f
	}
	s.Story.see(f)
}

// An overload that begins with a few packets for another cause is named by the one of
// most that was lost.
func TestTitleIsOfTheWholeLength(t *testing.T) {
	s := newTold()
	slow, full := model.CauseSlowAccept, model.CauseMaxConnections
	s.see(0, model.StatusLosing, slow, map[model.Cause]uint64{slow: 11}, 0)
	require.Equal(t, "slow_accept for 1 s: 11 packets of clients dropped", s.Summary.Title())
	s.see(2, model.StatusLosing, full, map[model.Cause]uint64{slow: 11, full: 200}, 0)
	s.see(28, model.StatusLosing, full, map[model.Cause]uint64{slow: 11, full: 343}, 40)
	s.see(5, model.StatusOK, model.CauseNone, map[model.Cause]uint64{slow: 11, full: 343}, 40)
	require.Equal(t, "max_connections for 30 s: 40 clients turned away", s.Summary.Title())
	require.Equal(t, "It is max_connections.", s.Summary.Text)
	proxied := recording.Frame{At: s.at.Add(time.Second)}
	proxied.Listener.Losses = &model.Losses{Clients: &model.Clients{Proxies: make([]model.ClientSource, 3)}}
	proxied.Listener.Verdict.Status = model.StatusOK
	other := s.Summary
	other.See(&proxied)
	require.Zero(t, other.Proxies, "it loses nothing now")
	proxied.Listener.Verdict.Status = model.StatusLosing
	other.See(&proxied)
	require.Equal(t, 3, other.Proxies)

	s.Counted = recording.Since(&s.Header.Base, &s.Last.Counted)
	s.settle()
	require.Equal(t, full, s.Worst.Listener.Verdict.Cause)
	answer := s.Answer()
	require.Equal(t, "40 clients got no answer from [::]:8080 on web-1: 2026-01-02 03:12:05 UTC, for 30 s. 40 gave up connecting.", answer.What)
	require.Equal(t, "It is max_connections.", answer.Why)

	c := s.Counted.Clients // 60 clients of a patience of 12 s
	c.Outcomes = [model.NumClientOutcomes]uint64{model.ClientConnected: 26, model.ClientDelayed: 19, model.ClientStalled: 15}
	c.LetIn, c.Answers = 45, model.ClientAnswers{Known: true, Answered: 20, Unanswered: 25}
	require.Equal(t, "40 of 60 clients got no answer from [::]:8080 on web-1: 2026-01-02 03:12:05 UTC, for 30 s. 15 never got in, 25 gave up waiting inside.", s.Answer().What)
	s.Summary.Proxies = 1
	require.Equal(t, "40 of 60 connections, mostly from one address, got no answer from [::]:8080 on web-1: 2026-01-02 03:12:05 UTC, for 30 s. 15 never got in, 25 gave up waiting inside.", s.Answer().What)
	s.Summary.Proxies = 0
	*s.Summary.TurnedAway = 41
	require.Equal(t, "41 clients got no answer from [::]:8080 on web-1: 2026-01-02 03:12:05 UTC, for 30 s.", s.Answer().What, "of which frame the counts are is not known")
}

// Where nothing was lost it is the cause that lasted.
func TestTitleOfWaiting(t *testing.T) {
	s := newTold()
	s.see(0, model.StatusSaturated, model.CauseMaxThreads, nil, 0)
	s.see(2, model.StatusSaturated, model.CauseDownstream, nil, 0)
	s.see(60, model.StatusSaturated, model.CauseDownstream, nil, 0)
	s.see(1, model.StatusSaturated, model.CauseMaxThreads, nil, 0)
	require.Equal(t, "downstream for 63 s: clients waited, nothing was lost", s.Summary.Title())
}

func TestTitleOfAClosedListener(t *testing.T) {
	s := newTold()
	s.see(0, model.StatusDown, model.CauseListenerClosed, nil, 0)
	s.see(90, model.StatusDown, model.CauseNoListener, nil, 0)
	require.Equal(t, "listener_closed for 90 s: nothing listened", s.Summary.Title())
}

// A server that ends after an overload is not what most of the clients were lost for.
func TestTitleOfAnOverloadThatEndsInDown(t *testing.T) {
	dropped := map[model.Cause]uint64{model.CauseMaxConnections: 200}
	s := newTold()
	s.see(0, model.StatusLosing, model.CauseMaxConnections, dropped, 40)
	s.see(20, model.StatusDown, model.CauseNoListener, dropped, 40)
	s.see(5, model.StatusDown, model.CauseNoListener, dropped, 40)
	require.Equal(t, "max_connections for 25 s: 40 clients turned away", s.Summary.Title())
	require.Equal(t, "It is max_connections.", s.Summary.Text)

	s = newTold()
	s.see(0, model.StatusLosing, model.CauseMaxConnections, map[model.Cause]uint64{model.CauseMaxConnections: 2}, 0)
	s.see(20, model.StatusDown, model.CauseNoListener, map[model.Cause]uint64{model.CauseMaxConnections: 2}, 0)
	s.see(5, model.StatusDown, model.CauseNoListener, map[model.Cause]uint64{model.CauseMaxConnections: 2}, 0)
	require.Equal(t, model.CauseNoListener, s.Summary.Cause, "nobody was turned away before")
}

// A report of what is being recorded says so, and is no recording of a killed agent.
func TestAStoryThatGoesOn(t *testing.T) {
	s := newTold()
	s.see(0, model.StatusLosing, model.CauseMaxConnections, map[model.Cause]uint64{model.CauseMaxConnections: 9}, 3)
	require.Contains(t, s.course(), "the agent was killed")
	s.Going = true
	require.Contains(t, s.course(), "continues")
	require.NotContains(t, s.course(), "killed")
	require.Contains(t, s.Answer().What, "and it continues")
	s.see(20, model.StatusOK, model.CauseNone, map[model.Cause]uint64{model.CauseMaxConnections: 9}, 3)
	require.NotContains(t, s.course(), "continues")
	require.Contains(t, s.course(), "the minute after it is being recorded")
	require.NotContains(t, s.Answer().What, "continues")
}

func TestALimitThatIsNone(t *testing.T) {
	s := newTold()
	s.Worst.Listener.Connector = &model.Connector{
		MaxConnections: setting(-1), MaxQueue: setting(math.MaxInt32), MaxThreads: setting(1000),
	}
	require.Equal(t, []Setting{
		{Name: "maxConnections", Value: "no limit", Source: "application.yml"},
		{Name: "maxThreads", Value: "1,000", Source: "application.yml"},
		{Name: "maxQueueSize", Value: "no limit", Source: "application.yml"},
	}, s.Settings())
}

// What is remembered of causes that a recording names is bounded.
func TestCausesOfARecordingAreBounded(t *testing.T) {
	s := newTold()
	for i := range 1000 {
		s.see(1, model.StatusLosing, model.Cause(string(rune('a'+i%26))+string(rune('a'+i/26))), nil, 0)
	}
	require.LessOrEqual(t, len(s.worsts), recording.MaxCauses)
}

// A person reads first whose listener it is.
func TestWhere(t *testing.T) {
	s := recording.Summary{Address: "[::]:8080", Port: 8080}
	require.Equal(t, "[::]:8080", s.Where())
	var l model.Listener
	l.Pod = &model.Pod{Namespace: "shop", Name: "orders-7d9c", Container: "app"}
	s.See(&recording.Frame{Listener: l})
	l.Pod = nil // not known for a moment
	s.See(&recording.Frame{Listener: l})
	require.Equal(t, "shop/orders-7d9c:8080", s.Where())
	s.Pod.Name = "a\x1b[2J"
	require.NotContains(t, s.Where(), "\x1b")
}

func setting(n int) *model.Setting[int] {
	return &model.Setting[int]{Value: n, Kind: model.SourceFile, Source: "application.yml"}
}

// While it lasts most clients may have left without a word: the title has them beside those that are known
// to have been turned away.
func TestTitleSaysWhatIsUndecided(t *testing.T) {
	s := recording.Summary{Began: time.Unix(1000, 0), LastSeen: time.Unix(1033, 0), LastTrouble: time.Unix(1033, 0), Cause: model.CauseMaxConnections, TurnedAway: new(uint64(118)), Open: 1429, Dropped: 9}
	require.Equal(t, "max_connections for 33 s: at least 118 clients turned away, 1,429 more without an answer so far", s.Title())
	s.TurnedAway = new(uint64(0))
	require.Equal(t, "max_connections for 33 s: 1,429 clients without an answer so far", s.Title())
	s.CutOff()
	require.Equal(t, "max_connections for 33 s: 1,429 clients without an answer when the recording ended", s.Title())
	s.Ended, s.Reason, s.TurnedAway = time.Unix(1100, 0), recording.EndOver, new(uint64(1547))
	s.CutOff()
	require.Equal(t, "max_connections for 33 s: 1,547 clients turned away", s.Title())
	s.Proxies = 1
	require.Equal(t, "max_connections for 33 s: 1,547 connections turned away", s.Title())
	require.Equal(t, recording.EndOver, s.Reason)
	s = recording.Summary{Began: s.Began, LastSeen: s.Began, Text: "damaged"}
	require.Equal(t, "nothing is known of it", s.Title())
}

// What ended a recording in the middle of the trouble is said, and that clients were left without an answer.
func TestAStoryThatWasCutOff(t *testing.T) {
	for reason, want := range map[string][2]string{
		recording.EndInterrupted: {"the agent was killed", "the agent was killed"},
		recording.EndStopped:     {"the agent was stopped", "the agent was stopped"},
		recording.EndDisplaced:   {"another owner", "another owner"},
		recording.EndOver:        {"", "the minute after it was calm"},
		"":                       {"", "it has not ended, or the agent was killed"},
	} {
		s := newTold()
		s.see(0, model.StatusLosing, model.CauseMaxConnections, map[model.Cause]uint64{model.CauseMaxConnections: 9}, 3)
		s.Summary.Open = 7
		if s.Summary.Reason = reason; reason != "" {
			s.Summary.Ended = s.at
		}
		what, course := s.Answer().What, s.course()
		require.Contains(t, what, want[0], reason)
		require.Contains(t, course, want[1], reason)
		require.NotContains(t, what+course, "so far")
		require.NotContains(t, what+course, "continues")
		require.Equal(t, reason != recording.EndOver, strings.Contains(what, "7 more"), "%s: %s", reason, what)
	}
}
