package handshake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// A client may end its side after the request and wait for the answer (shutdown(2)): the
// server's comes after its FIN, and it takes it. One that has left rejects it.
func TestAnswerAfterTheClientsFIN(t *testing.T) {
	const request, response = 100, 400
	for _, tt := range []struct {
		name  string
		stays float64 // seconds
		play  func(s *script)
		want  outcome.Answers
	}{
		{"it takes the answer, of which nothing else is read", .02, func(*script) {}, outcome.Answers{Answered: 1}},
		{"it has left at once, as a check does behind the PROXY protocol's line", .003, func(s *script) { s.in(packet.FlagRST, s.isn+request+2, 0) }, outcome.Answers{Checks: 1}},
		{"it shuts down its side at once, and takes the answer", .003, func(*script) {}, outcome.Answers{Answered: 1}},
		{"it acknowledges the answer", .02, func(s *script) { s.in(packet.FlagACK, s.isn+request+2, serverISN+response+2) }, outcome.Answers{Answered: 1}},
		{"it has left, and rejects it", .02, func(s *script) { s.in(packet.FlagRST, s.isn+request+2, 0) }, outcome.Answers{Unanswered: 1}},
		{"the RST comes later than the server's FIN", .02, func(s *script) { s.wait(.1); s.in(packet.FlagRST, s.isn+request+2, 0) }, outcome.Answers{Unanswered: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, Options{})
			s.syn()
			s.synAck()
			s.acked()
			s.has(kernel.Connection)
			s.wait(tt.stays)
			s.in(packet.FlagFIN|packet.FlagACK, s.isn+request+1, serverISN+1)
			s.wait(.13)
			s.out(packet.FlagFIN|packet.FlagACK, serverISN+response+1, s.isn+request+2)
			tt.play(s)
			s.has(kernel.NoSocket)
			e := s.ends()
			require.Equal(t, tt.want, e.Answers)
			require.Equal(t, just(outcome.Connected), e.Clients)
		})
	}
}

// Who sends something and its FIN at once is a check, as by the PROXY protocol's line, if its connection ends soon. Where
// the server comes to that late it may be one that has shut down its side alone, waits for its answer, and
// gives up without a packet: it has sent a request, and got none.
func TestCheckOrHalfClosing(t *testing.T) {
	const request = 100
	rejects := func(s *script) {
		s.out(packet.FlagFIN|packet.FlagACK, serverISN+401, s.isn+request+2)
		s.in(packet.FlagRST, s.isn+request+2, 0)
	}
	resets := func(s *script) { s.out(packet.FlagRST|packet.FlagACK, serverISN+1, s.isn+request+2) }
	closes := func(s *script) { s.out(packet.FlagFIN|packet.FlagACK, serverISN+1, s.isn+request+2) }
	for _, tt := range []struct {
		name string
		late float64 // seconds
		play func(s *script)
		want outcome.Answers
	}{
		{"it rejects the answer", .3, rejects, outcome.Answers{Checks: 1}},
		{"the server resets it", .3, resets, outcome.Answers{Checks: 1}},
		{"the server sends nothing", .3, closes, outcome.Answers{Checks: 1}},
		{"it rejects an answer that comes late", 3, rejects, outcome.Answers{Unanswered: 1}},
		{"the server resets it late", 3, resets, outcome.Answers{Unanswered: 1}},
		{"the server sends nothing, and ends late", 3, closes, outcome.Answers{Unanswered: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, Options{})
			s.syn()
			s.synAck()
			s.acked()
			s.has(kernel.Connection)
			s.wait(.003)
			s.in(packet.FlagFIN|packet.FlagACK, s.isn+request+1, serverISN+1)
			s.wait(tt.late)
			tt.play(s)
			s.has(kernel.NoSocket)
			e := s.ends()
			require.Equal(t, tt.want, e.Answers)
			require.Equal(t, just(outcome.Connected), e.Clients)
		})
	}
}

// So it may while it is not let in: it has not left, as long as its kernel repeats what it sent.
func TestShutBeforeItIsLetIn(t *testing.T) {
	const request, response = 100, 400
	for _, tt := range []struct {
		name    string
		play    func(s *script, repeats func())
		want    outcome.Outcome
		answers outcome.Answers
	}{
		{"it is let in late, and takes the answer", func(s *script, repeats func()) {
			s.has(kernel.Connection)
			repeats()
			s.wait(2)
			s.out(packet.FlagFIN|packet.FlagACK, serverISN+response+1, s.isn+request+2)
			s.in(packet.FlagACK, s.isn+request+2, serverISN+response+2)
			s.has(kernel.OnlyListener)
		}, outcome.Delayed, outcome.Answers{Answered: 1}},
		{"it is let in late, and has left", func(s *script, repeats func()) {
			s.has(kernel.Connection)
			repeats()
			s.wait(2)
			s.out(packet.FlagFIN|packet.FlagACK, serverISN+response+1, s.isn+request+2)
			s.in(packet.FlagRST, s.isn+request+2, 0)
			s.has(kernel.OnlyListener)
		}, outcome.Delayed, outcome.Answers{Unanswered: 1}},
		{"it is never let in", func(*script, func()) {}, outcome.Stalled, outcome.Answers{}},
		{"it is reset by the server", func(s *script, _ func()) { s.out(packet.FlagRST, serverISN+1, 0) }, outcome.Reset, outcome.Answers{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, Options{})
			s.tracker.Widen(true)
			s.tracker.Cookies(0, time.Minute)
			s.tracker.Drops(port, 0, time.Minute)
			s.has(kernel.OnlyListener)
			s.syn()
			s.synAck()
			s.acked()
			repeats := func() {
				s.observe(packet.Segment{
					Link: packet.Link{Incoming: true, Index: 2}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(), Dst: server.Addr().As16(), DstPort: port,
					Flags: packet.FlagACK | packet.FlagFIN, Seq: s.isn + 1, Ack: serverISN + 1, Payload: request,
				})
				s.tracker.Ask(s.at)
			}
			for _, seconds := range []float64{.001, .3, .6, 1.2} {
				s.wait(seconds)
				repeats()
			}
			require.Equal(t, [outcome.NumOutcomes]uint64{}, s.tracker.Report()[0].Clients, "nothing is known yet")
			s.wait(2.4)
			tt.play(s, repeats)
			e := s.ends()
			require.Equal(t, just(tt.want), e.Clients)
			require.Equal(t, tt.answers, e.Answers)
			require.Zero(t, e.LetInLate)
		})
	}
}
