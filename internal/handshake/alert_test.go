package handshake

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// Where the server's whole answer is as long as a TLS alert, the client's handshake has failed.
func TestAlerted(t *testing.T) {
	const ack, fin, psh, hello = packet.FlagACK, packet.FlagFIN | packet.FlagACK, 8, 517
	behind := func(sent uint32) func(*script) {
		return func(s *script) { s.out(fin, serverISN+1+sent, s.isn+1+hello) }
	}
	for _, tt := range []struct {
		name string
		play func(s *script)
		want uint64
	}{
		{"an alert and the server's FIN", func(s *script) {
			behind(7)(s)
			s.in(fin, s.isn+1+hello, serverISN+9)
		}, 1},
		{"both in one segment", func(s *script) {
			s.observe(packet.Segment{
				Link: packet.Link{Outgoing: true, Index: s.device}, Dst: s.from.Addr().As16(), DstPort: s.from.Port(),
				Src: server.Addr().As16(), SrcPort: port, Flags: fin | psh, Seq: serverISN + 1, Ack: s.isn + 1 + hello, Payload: 7,
			})
		}, 1},
		{"the alert was acknowledged before", func(s *script) {
			s.in(ack, s.isn+1+hello, serverISN+8)
			behind(7)(s)
		}, 1},
		{"the FIN is repeated, and on another device", func(s *script) {
			behind(7)(s)
			behind(7)(s)
			s.wait(.2)
			behind(7)(s)
		}, 1},
		{"no answer", behind(0), 0},
		{"less than an alert", behind(6), 0},
		{"more, as an encrypted one", behind(24), 0},
		{"a certificate before it", behind(2007), 0},
		{"the client has sent nothing", func(s *script) { s.out(fin, serverISN+8, s.isn+1) }, 0},
		{"the client has ended its side", func(s *script) {
			s.wait(1)
			s.in(fin, s.isn+1+hello, serverISN+1)
			s.out(fin, serverISN+8, s.isn+2+hello)
		}, 0},
		{"the client has reset the connection", func(s *script) {
			s.in(packet.FlagRST|ack, s.isn+1+hello, serverISN+1)
			behind(7)(s)
		}, 0},
		{"a FIN of an earlier connection", func(s *script) { s.out(fin, serverISN-700, s.isn-300) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, Options{})
			s.syn()
			s.synAck()
			s.acked()
			tt.play(s)
			e := s.ends()
			require.Equal(t, tt.want, e.Alerted)
		})
	}
}

// While what leaves is not read, its length is not known.
func TestAlertedInTheCalm(t *testing.T) {
	s := newScript(t, Options{})
	s.tracker.StopOutgoing(s.at)
	s.syn()
	s.wait(.1)
	s.in(packet.FlagFIN|packet.FlagACK, s.isn+518, serverISN+9)
	s.out(packet.FlagFIN|packet.FlagACK, serverISN+8, s.isn+518)
	require.Zero(t, s.tracker.Report()[0].Alerted)
}
