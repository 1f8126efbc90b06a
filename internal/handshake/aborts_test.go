package handshake

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// A server that resets a client in the midst of its answer (SO_LINGER 0) is known by two RSTs: its own, and the one that
// answers what the client acknowledges afterwards.
func TestResetInAnswer(t *testing.T) {
	const rst, ack, fin, psh = packet.FlagRST, packet.FlagACK, packet.FlagFIN, 8
	const sent = serverISN + 1 + 20_000 // behind all that the server has sent
	for _, tt := range []struct {
		name string
		play func(s *script)
		want uint64
	}{
		{"part of the answer is on its way", func(s *script) {
			s.out(rst|ack, sent, clientISN+100)
			s.wait(.02)
			s.out(rst, serverISN+1+3_000, 0)
		}, 1},
		{"and the client acknowledges more of it", func(s *script) {
			s.out(rst|ack, sent, clientISN+100)
			for _, acked := range []uint32{3_000, 6_000, 20_000} {
				s.wait(.02)
				s.out(rst, serverISN+1+acked, 0)
			}
		}, 1},
		{"all was acknowledged, and a request comes meanwhile", func(s *script) {
			s.out(rst|ack, sent, clientISN+100)
			s.wait(.02)
			s.out(rst, sent, 0)
		}, 0},
		{"only its FIN was not", func(s *script) {
			s.out(fin|ack, sent, clientISN+100)
			s.out(rst|ack, sent+1, clientISN+100)
			s.wait(.02)
			s.out(rst, sent, 0)
		}, 0},
		{"a request behind the server's FIN, whose socket is closed", func(s *script) {
			s.out(fin|ack, sent, clientISN+100)
			s.wait(.02)
			s.out(rst, sent-10, 0)
		}, 0},
		{"the client resets the connection, too", func(s *script) {
			s.out(rst|ack, sent, clientISN+100)
			s.in(rst|ack, clientISN+101, serverISN+1+3_000)
			s.wait(.02)
			s.out(rst, serverISN+1+3_000, 0)
		}, 0},
		{"the client had ended its side", func(s *script) {
			s.in(fin|ack, clientISN+101, serverISN+1)
			s.out(rst|ack, sent, clientISN+100)
			s.wait(.02)
			s.out(rst, serverISN+1+3_000, 0)
		}, 0},
		{"long before", func(s *script) {
			s.out(rst|ack, sent, clientISN+100)
			s.wait(3)
			s.out(rst, serverISN+1+3_000, 0)
		}, 0},
		{"nothing but its own RST", func(s *script) { s.out(rst|ack, sent, clientISN+100) }, 0},
		{"none of its own: strays", func(s *script) { s.out(rst, serverISN+1+3_000, 0) }, 0},
		{"nobody listened", func(s *script) { s.out(rst|ack, 0, clientISN+1); s.out(rst, serverISN+1, 0) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, Options{})
			s.syn()
			s.synAck()
			s.acked()
			s.in(psh|ack, clientISN+1, serverISN+1)
			tt.play(s)
			require.Equal(t, tt.want, s.tracker.Report()[0].ResetInAnswer)
		})
	}
}

// However many connections a server resets, the latest are kept, and nothing is allocated for them.
func TestAbortsAreBounded(t *testing.T) {
	s := newScript(t, Options{})
	s.syn()
	s.synAck()
	s.wait(.01)
	seg := packet.Segment{
		Link: packet.Link{Outgoing: true, Index: 2}, Src: server.Addr().As16(), SrcPort: port,
		Dst: s.from.Addr().As16(), Flags: packet.FlagRST | packet.FlagACK, Ack: clientISN + 100,
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		seg.DstPort++
		seg.Seq += 1000
		s.tracker.Observe(s.at, &seg)
	}))
}
