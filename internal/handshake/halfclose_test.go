package handshake

import (
	"testing"

	"github.com/stretchr/testify/require"

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
		want  Answers
	}{
		{"it takes the answer, of which nothing else is read", .02, func(*script) {}, Answers{Answered: 1}},
		{"it has left at once, as a check does behind the PROXY protocol's line", .003, func(s *script) { s.in(packet.FlagRST, s.isn+request+2, 0) }, Answers{Checks: 1}},
		{"it shuts down its side at once, and takes the answer", .003, func(*script) {}, Answers{Answered: 1}},
		{"it acknowledges the answer", .02, func(s *script) { s.in(packet.FlagACK, s.isn+request+2, serverISN+response+2) }, Answers{Answered: 1}},
		{"it has left, and rejects it", .02, func(s *script) { s.in(packet.FlagRST, s.isn+request+2, 0) }, Answers{Unanswered: 1}},
		{"the RST comes later than the server's FIN", .02, func(s *script) { s.wait(.1); s.in(packet.FlagRST, s.isn+request+2, 0) }, Answers{Unanswered: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, Options{})
			s.syn()
			s.synAck()
			s.acked()
			s.has(Connection)
			s.wait(tt.stays)
			s.in(packet.FlagFIN|packet.FlagACK, s.isn+request+1, serverISN+1)
			s.wait(.13)
			s.out(packet.FlagFIN|packet.FlagACK, serverISN+response+1, s.isn+request+2)
			tt.play(s)
			s.has(NoSocket)
			e := s.ends()
			require.Equal(t, tt.want, e.Answers)
			require.Equal(t, just(Connected), e.Clients)
		})
	}
}
