package handshake

import (
	"net/netip"
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

// RSTs that leave the port are known from each other: the server's own, those that answer what comes for a connection that it has ended, and
// those of what comes behind its own, or to a port without a listener.
func TestResetsOfThePort(t *testing.T) {
	const rst, ack, fin = packet.FlagRST, packet.FlagACK, packet.FlagFIN
	s := newScript(t, Options{})
	s.syn()
	s.synAck()
	s.acked()
	counted := func() [2]uint64 {
		e := s.tracker.Report()[0]
		return [2]uint64{e.Aborted, e.Late}
	}
	s.out(fin|ack, serverISN+1, clientISN+1)
	require.Zero(t, counted())
	s.out(rst, serverISN+2, 0)
	require.Equal(t, [2]uint64{0, 1}, counted(), "a request came late")
	s.out(rst|ack, serverISN+500, clientISN+1)
	require.Equal(t, [2]uint64{1, 1}, counted())
	s.out(rst, serverISN+100, 0)
	s.out(rst, serverISN+200, 0)
	require.Equal(t, [2]uint64{1, 1}, counted(), "what was on its way")
	s.out(rst|ack, 0, clientISN+1)
	require.Equal(t, [2]uint64{1, 1}, counted(), "nothing listens")
	s.wait(3)
	s.out(rst, serverISN+300, 0)
	require.Equal(t, [2]uint64{1, 2}, counted())
}

// Clients of before are reset, and nobody has come since. Where nothing listens, and where it only passes through, nobody is.
func TestResetsBeforeAnybodyComes(t *testing.T) {
	const rst, ack = packet.FlagRST, packet.FlagACK
	s := newScript(t, Options{})
	s.tracker.SetLocal([]netip.Prefix{netip.MustParsePrefix("10.0.0.9/32")})
	s.out(rst, serverISN+2, 0)
	s.tracker.SetLocal([]netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")})
	s.out(rst|ack, 0, clientISN+1)
	require.Empty(t, s.tracker.Report())
	s.out(rst, serverISN+2, 0)
	e := s.tracker.Report()
	require.Len(t, e, 1)
	require.Equal(t, server, e[0].Addr)
	require.EqualValues(t, 1, e[0].Late)
	require.Zero(t, e[0].Clients)
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
