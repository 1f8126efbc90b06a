package handshake

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// A server that takes a request and ends the connection without a byte has not answered it, be it that its FIN was not
// read. A check that ends its connection itself is none.
func TestEndedByTheServer(t *testing.T) {
	const fin, request = packet.FlagFIN | packet.FlagACK, 50
	for _, tt := range []struct {
		name string
		play func(s *script)
		want outcome.Answers
	}{
		{"its FIN, and the client's", func(s *script) {
			s.out(fin, serverISN+1, s.isn+1+request)
			s.in(fin, s.isn+1+request, serverISN+2)
		}, outcome.Answers{Unanswered: 1, Closed: 1}},
		{"its FIN was not read", func(s *script) { s.in(fin, s.isn+1+request, serverISN+2) }, outcome.Answers{Unanswered: 1, Closed: 1}},
		{"its FIN was not read, which the client acknowledges alone", func(s *script) {
			s.in(packet.FlagACK, s.isn+1+request, serverISN+2)
			s.wait(.2)
			s.in(fin, s.isn+1+request, serverISN+2)
		}, outcome.Answers{Unanswered: 1, Closed: 1}},
		{"its FIN was not read, and the client resets the connection", func(s *script) {
			s.in(packet.FlagRST|packet.FlagACK, s.isn+1+request, serverISN+2)
		}, outcome.Answers{Unanswered: 1, Closed: 1}},
		{"its FIN and a RST, as the request was not read", func(s *script) {
			s.out(fin, serverISN+1, s.isn+1+request)
			s.out(packet.FlagRST|packet.FlagACK, serverISN+2, s.isn+1+request)
		}, outcome.Answers{Unanswered: 1, Closed: 1}},
		{"the same, and its FIN was not read", func(s *script) {
			s.out(packet.FlagRST|packet.FlagACK, serverISN+2, s.isn+1+request)
		}, outcome.Answers{Unanswered: 1, Closed: 1}},
		{"an answer, its FIN and a RST", func(s *script) {
			s.out(fin, serverISN+101, s.isn+1+request)
			s.out(packet.FlagRST|packet.FlagACK, serverISN+102, s.isn+1+request)
		}, outcome.Answers{Answered: 1}},
		{"an answer, and its FIN", func(s *script) {
			s.out(fin, serverISN+101, s.isn+1+request)
			s.in(fin, s.isn+1+request, serverISN+102)
		}, outcome.Answers{Answered: 1}},
		{"an answer, and its FIN, of which neither was read", func(s *script) { s.in(fin, s.isn+1+request, serverISN+102) }, outcome.Answers{Answered: 1}},
		{"a client that has waited, and leaves", func(s *script) {
			s.in(packet.FlagACK, s.isn+1+request, serverISN+1)
			s.wait(3)
			s.in(fin, s.isn+1+request, serverISN+1)
			s.out(fin, serverISN+1, s.isn+2+request)
			s.in(packet.FlagACK, s.isn+2+request, serverISN+2)
		}, outcome.Answers{Unanswered: 1}},
		{"its FIN to one that has sent nothing", func(s *script) {
			s.out(fin, serverISN+1, s.isn+1)
			s.in(fin, s.isn+1, serverISN+2)
		}, outcome.Answers{Checks: 1}},
		{"a check that ends the connection", func(s *script) {
			s.in(fin, s.isn+1, serverISN+1)
			s.out(fin, serverISN+1, s.isn+2)
			s.in(packet.FlagACK, s.isn+2, serverISN+2)
		}, outcome.Answers{Checks: 1}},
		{"a check that sends a line and ends the connection", func(s *script) {
			s.in(fin, s.isn+1+request, serverISN+1)
			s.out(fin, serverISN+1, s.isn+2+request)
			s.in(packet.FlagACK, s.isn+2+request, serverISN+2)
		}, outcome.Answers{Checks: 1}},
		{"the same, and the server's FIN was not read", func(s *script) {
			s.in(fin, s.isn+1+request, serverISN+1)
			s.in(packet.FlagACK, s.isn+2+request, serverISN+2)
		}, outcome.Answers{Checks: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, Options{})
			s.tracker.Widen(true)
			s.syn()
			s.synAck()
			s.acked()
			s.has(kernel.SocketUnknown)
			tt.play(s)
			e := s.ends()
			require.Equal(t, just(outcome.Connected), e.Clients)
			require.Equal(t, tt.want, e.Answers)
		})
	}
}
