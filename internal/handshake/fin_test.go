package handshake

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// A client's FIN that waited until what it had sent was taken comes as soon as its host answers: on the loopback at once,
// over a network within what others of its address took at times. One that comes later is of a client that was still there
// when it was let in, and had no answer.
func TestFINThatWaited(t *testing.T) {
	const device = 2
	for _, tt := range []struct {
		name  string
		link  uint32
		slow  time.Duration // the handshake of another of its address, which took that long
		after time.Duration // what it had sent was taken
		late  bool
	}{
		{"on the loopback, at once", packet.Loopback, 0, time.Millisecond, true},
		{"on the loopback, some milliseconds later", packet.Loopback, 0, 6 * time.Millisecond, false},
		{"on the loopback of a busy machine", packet.Loopback, 12 * time.Millisecond, 6 * time.Millisecond, true},
		{"from elsewhere, some milliseconds later", device, 0, 15 * time.Millisecond, true},
		{"from elsewhere, later", device, 0, 40 * time.Millisecond, false},
		{"from elsewhere, where a host is slow at times", device, 200 * time.Millisecond, 150 * time.Millisecond, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, Options{})
			s.tracker.Widen(true)
			link := packet.Link{Incoming: true, Outgoing: tt.link == packet.Loopback, Index: tt.link}
			in := func(c *script, flags uint8, seq, ack uint32, payload int) {
				c.tracker.Observe(s.at, &packet.Segment{
					Link: link, Src: c.from.Addr().As16(), SrcPort: c.from.Port(), Dst: server.Addr().As16(), DstPort: port,
					Flags: flags, Seq: seq, Ack: ack, Payload: payload,
				})
			}
			begin := func(c *script, took time.Duration) {
				in(c, packet.FlagSYN, c.isn, 0, 0)
				out := link
				out.Incoming, out.Outgoing = link.Outgoing, true
				c.tracker.Observe(s.at, &packet.Segment{
					Link: out, Dst: c.from.Addr().As16(), DstPort: c.from.Port(), Src: server.Addr().As16(), SrcPort: port,
					Flags: packet.FlagSYN | packet.FlagACK, Seq: serverISN, Ack: c.isn + 1,
				})
				s.at += took
				in(c, packet.FlagACK, c.isn+1, serverISN+1, 0)
			}
			begin(s.client("10.0.0.7:41000", 7), 0)
			begin(s.client("10.0.0.7:41001", 7), tt.slow)
			s.at += 5 * time.Second // they are counted
			s.has(kernel.NoSocket)
			s.tracker.Advance(s.at)
			before := s.tracker.Report()[0]

			s.tracker.Drops(port, s.at, s.at+time.Minute)
			s.tracker.Cookies(s.at, s.at+time.Minute)
			s.has(kernel.OnlyListener)
			begin(s, 0)
			in(s, packet.FlagACK, s.isn+1, serverISN+1, 50)
			s.tracker.Ask(s.at)
			s.at += 6 * time.Second
			s.tracker.Advance(s.at)
			in(s, packet.FlagACK, s.isn+1, serverISN+1, 50) // it is taken
			s.has(kernel.Connection)
			s.at += tt.after
			in(s, packet.FlagFIN|packet.FlagACK, s.isn+51, serverISN+1, 0)
			s.tracker.Ask(s.at)
			e := s.ends()
			if tt.late {
				require.EqualValues(t, 1, e.Clients[outcome.Stalled])
				require.EqualValues(t, 1, e.LetInLate)
				return
			}
			require.EqualValues(t, 1, e.Clients[outcome.Delayed])
			require.EqualValues(t, before.LetIn+1, e.LetIn)
			require.EqualValues(t, 1, e.Answers.Unanswered)
		})
	}
}

// Who was let in by a bare ACK, and left before what it had sent was taken, was there when it was let in, or was not: that
// its FIN waited tells no more than that it left before. Where its own socket is known, as on the loopback, that tells.
func TestThereWhenItWasLetIn(t *testing.T) {
	for there, want := range map[bool]outcome.Outcome{true: outcome.Delayed, false: outcome.Stalled} {
		f := kernel.Found{Socket: kernel.HalfOpenSocket}
		var s *script
		letIn := time.Duration(0)
		s = newScript(t, Options{Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found {
			if f.Socket == kernel.Connection {
				f.Quiet = s.at - letIn
			}
			return f
		}})
		s.tracker.Widen(true)
		s.tracker.Drops(port, 0, time.Minute)
		data := func() {
			s.tracker.Observe(s.at, &packet.Segment{
				Link: packet.Link{Incoming: true, Outgoing: true, Index: packet.Loopback}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(),
				Dst: server.Addr().As16(), DstPort: port, Flags: packet.FlagACK, Seq: s.isn + 1, Ack: serverISN + 1, Payload: 50,
			})
		}
		s.syn()
		s.synAck()
		s.acked()
		data()
		s.wait(1)
		s.synAck()
		s.acked()
		letIn, f.Socket, f.HasInfo, f.Client = s.at, kernel.Connection, true, kernel.ClientUnknown
		if there {
			f.Client = kernel.ClientThere
		}
		s.tracker.Ask(s.at)
		s.wait(.4)
		f.Client = kernel.ClientUnknown
		data()
		f.Received = 50
		s.in(packet.FlagFIN|packet.FlagACK, s.isn+51, serverISN+1)
		s.tracker.Ask(s.at)
		e := s.ends()
		require.Equal(t, just(want), e.Clients, there)
		require.Equal(t, there, e.Answers.Unanswered == 1)
	}
}

// Who had no socket, and whose port another client uses meanwhile, was not let in: the socket is the other's.
func TestSocketOfTheNextClient(t *testing.T) {
	s := newScript(t, Options{})
	s.late = true
	s.tracker.Widen(true)
	s.tracker.Drops(port, 0, 3*time.Second)
	s.tracker.Cookies(0, 3*time.Second)
	s.has(kernel.OnlyListener)
	s.syn()
	s.synAck()
	s.acked()
	s.observe(packet.Segment{
		Link: packet.Link{Incoming: true, Index: 2}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(),
		Dst: server.Addr().As16(), DstPort: port, Flags: packet.FlagACK, Seq: s.isn + 1, Ack: serverISN + 1, Payload: 50,
	})
	s.wait(.02)
	s.tracker.Ask(s.at)
	s.wait(4)
	next := s.client(s.from.String(), s.isn+100_000)
	s.has(kernel.Connection)
	next.syn()
	require.EqualValues(t, 1, s.tracker.Report()[0].Clients[outcome.Stalled])
	next.synAck()
	next.acked()
	s.tracker.Ask(s.at)
	s.wait(3)
	s.tracker.Advance(s.at)
	e := s.tracker.Report()[0]
	require.EqualValues(t, 1, e.LetIn)
	require.EqualValues(t, 1, e.Clients[outcome.Connected])
}

// What comes of a client that has a socket already is not its answer to the SYN-ACK, and tells no round trip: one of a
// millisecond would be taken for that of all clients of its address.
func TestRoundTripOfWhoIsInside(t *testing.T) {
	for _, tt := range []struct {
		signs signs
		want  uint16
	}{{0, 1}, {inside, 0}} {
		a := attempt{isn: 100, serverISN: 200, replies: 1, lastReply: 140, entered: 140, signs: tt.signs}
		a.segment(140*time.Millisecond, &packet.Segment{Seq: 101, Ack: 201, Flags: packet.FlagACK}, true)
		require.Equal(t, tt.want, a.rtt)
	}
}
