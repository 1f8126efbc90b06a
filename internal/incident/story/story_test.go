package story

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A recording says how many clients there were beside the packets, and how long
// those waited that were let in late; one that keeps only their mean is read, too.
func TestClientsOfAStory(t *testing.T) {
	c := &model.ClientTotals{Delays: model.ConnectDelays{Count: 6, Sum: 18}}
	c.Outcomes[model.ClientConnected], c.Outcomes[model.ClientDelayed] = 26, 6
	c.Outcomes[model.ClientGaveUp], c.Outcomes[model.ClientHalfOpen] = 8, 1
	s := &Story{Counted: recording.Counted{Dropped: []model.Drops{{Packets: 58}}, Clients: c}}
	frame := func(w model.Waits) {
		s.see(&recording.Frame{Listener: model.Listener{Losses: &model.Losses{Clients: &model.Clients{Waits: w}}}})
	}
	const end = ", 26 were let in at once, 1 apparently did not answer the SYN-ACK; 58 packets dropped."
	require.Contains(t, s.Clients(), "By their handshakes: 8 clients gave up connecting, 6 were let in after 3 s on average"+end)
	frame(model.Waits{Shortest: 2 * time.Second, Longest: 3 * time.Second})
	frame(model.Waits{})
	frame(model.Waits{Shortest: time.Second, Longest: 2 * time.Second})
	require.Contains(t, s.Clients(), "By their handshakes: 8 clients gave up connecting, 6 were let in after 1 to 3 s"+end)

	only := &model.ClientTotals{}
	only.Outcomes[model.ClientConnected] = 1
	require.Contains(t, (&Story{Counted: recording.Counted{Clients: only}}).Clients(), "By their handshakes: 1 client was let in at once; 0 packets dropped.")

	c.LetIn, c.Answers = 32, model.ClientAnswers{Known: true, Answered: 4, Checks: 28}
	require.Contains(t, s.Clients(), "By their handshakes: 8 clients gave up connecting, 6 were let in after 1 to 3 s"+end+" 4 of the 32 let in had an answer. 28 of those let in were checks: they asked for nothing.")
}

// The moment in which a listener closed with clients in its queue is worse than
// those in which nothing listened: its advice is the one that helps.
func TestWorstMomentOfAClosedListener(t *testing.T) {
	s := &Story{Inside: -1}
	for i, f := range []recording.Frame{
		{Listener: model.Listener{Verdict: model.Verdict{Status: model.StatusDown, Cause: model.CauseListenerClosed}, Losses: &model.Losses{QueueResets: 4}}},
		{Listener: model.Listener{Verdict: model.Verdict{Status: model.StatusDown, Cause: model.CauseNoListener, Findings: make([]model.Finding, 3)}, Losses: &model.Losses{}}},
	} {
		if i == 0 {
			s.Worst = f
		}
		s.see(&f)
	}
	require.Equal(t, model.CauseListenerClosed, s.Worst.Listener.Verdict.Cause)
}

func TestWhatWasFullFirst(t *testing.T) {
	began := at(60)
	s := &Story{Header: recording.Header{Began: began}}
	for i := range int64(90) {
		p := recording.UnknownPoint(at(0).Unix() + i)
		p.Used = [...]int8{int8(min(100, i)), 100, 3, -1}
		if i == 30 {
			p.Used[1] = 99
		}
		if i >= 65 {
			p.Used[0] = 100
		}
		s.Points = append(s.Points, p)
	}
	require.Equal(t, []string{"all threads were busy from 22:13:51", "all of maxConnections were in use from 22:14:25"}, s.filled())
	s.Points = s.Points[31:]
	require.Equal(t, "all threads were busy when the recording begins", s.filled()[0])
}

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

var start = time.Unix(1_700_000_000, 0)
