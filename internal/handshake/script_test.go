package handshake

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/recall"
	"github.com/tcpdiag/tcpdiag/internal/handshake/timers"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	port      = 8080
	clientISN = 1000
	serverISN = 5000
)

// script plays packets of one client to a tracker.
type script struct {
	t       *testing.T
	tracker *Tracker
	at      time.Duration
	from    netip.AddrPort
	isn     uint32
	device  uint32
	met     *kernel.Socket // what the kernel has for it
	late    bool           // what is observed was sent some time ago: nothing is judged before
}

func newScript(t *testing.T, o Options) *script {
	met := kernel.SocketUnknown
	if o.Socket == nil {
		o.Socket = func(to, from netip.AddrPort, device uint32) kernel.Found { return kernel.Found{Socket: met} }
	}
	tracker := NewTracker(o)
	tracker.SetPorts([]uint16{port})
	return &script{t: t, tracker: tracker, at: time.Second, from: netip.MustParseAddrPort("10.0.0.7:40000"), isn: clientISN, device: 2, met: &met}
}

// client is another client, on the same clock.
func (s *script) client(from string, isn uint32) *script {
	other := *s
	other.from, other.isn = netip.MustParseAddrPort(from), isn
	return &other
}

var server = netip.MustParseAddrPort("10.0.0.1:8080")

func (s *script) in(flags uint8, seq, ack uint32) {
	s.observe(packet.Segment{
		Link: packet.Link{Incoming: true, Index: s.device}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(),
		Dst: server.Addr().As16(), DstPort: port, Flags: flags, Seq: seq, Ack: ack,
	})
}

func (s *script) out(flags uint8, seq, ack uint32) {
	s.observe(packet.Segment{
		Link: packet.Link{Outgoing: true, Index: s.device}, Dst: s.from.Addr().As16(), DstPort: s.from.Port(),
		Src: server.Addr().As16(), SrcPort: port, Flags: flags, Seq: seq, Ack: ack,
	})
}

func (s *script) observe(segment packet.Segment) {
	if !s.late {
		s.tracker.Advance(s.at)
	}
	s.tracker.Observe(s.at, &segment)
}

func (s *script) syn() { s.in(packet.FlagSYN, s.isn, 0) }
func (s *script) refused() {
	s.syn()
	s.out(packet.FlagRST|packet.FlagACK, 0, s.isn+1)
}
func (s *script) synAck() { s.out(packet.FlagSYN|packet.FlagACK, serverISN, s.isn+1) }
func (s *script) served() { s.in(packet.FlagACK, s.isn+100, serverISN+500) }

// sends plays a segment of the client: from is the number of its first byte, from 1.
func (s *script) sends(flags uint8, from, payload int) {
	s.observe(packet.Segment{
		Link: packet.Link{Incoming: true, Index: s.device}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(), Dst: server.Addr().As16(), DstPort: port,
		Flags: flags, Seq: s.isn + uint32(from), Ack: serverISN + 1, Payload: payload,
	})
}
func (s *script) acked() { s.in(packet.FlagACK, s.isn+1, serverISN+1) }

// has says what the kernel has for the client from now on.
func (s *script) has(met kernel.Socket) { *s.met = met }

// wait lets seconds pass.
func (s *script) wait(seconds float64) { s.at += time.Duration(seconds * float64(time.Second)) }

// synAt and synAckAt play packets at seconds after now, in order.
func (s *script) syns(times ...float64) { s.play(s.syn, times) }

func (s *script) synAcks(times ...float64) { s.play(s.synAck, times) }

func (s *script) play(send func(), times []float64) {
	start := s.at
	for _, seconds := range times {
		s.at = start + time.Duration(seconds*float64(time.Second))
		send()
	}
}

// ends judges all that is open and returns what the port's clients came to.
func (s *script) ends() outcome.Endpoint {
	s.t.Helper()
	for end := s.at + 5*time.Minute; s.at < end; s.at += tick {
		s.tracker.Unread().CalmTo = s.at
		s.tracker.Advance(s.at)
	}
	report := s.tracker.Report()
	require.Len(s.t, report, 1)
	require.Zero(s.t, report[0].Open(), "nothing is open")
	return report[0]
}

func just(o outcome.Outcome) (want [outcome.NumOutcomes]uint64) {
	want[o] = 1
	return want
}

// Each script is one client, and ends in one outcome.
func TestOutcomes(t *testing.T) {
	tests := []struct {
		name  string
		play  func(s *script)
		want  outcome.Outcome
		delay float64
	}{
		{"a SYN-ACK that is not repeated", func(s *script) { s.syn(); s.synAck() }, outcome.Connected, 0},
		{"let in with its third SYN", func(s *script) { s.syns(0, 1, 2); s.synAck() }, outcome.Delayed, 2},
		{"one SYN and no more", func(s *script) { s.syn() }, outcome.GaveUp, 0},
		{"all SYNs of Linux before 6.5", func(s *script) { s.syns(0, 1, 3, 7, 15, 31, 63) }, outcome.GaveUp, 0},
		{"all SYNs of Linux 6.5", func(s *script) { s.syns(0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67) }, outcome.GaveUp, 0},
		{"its next SYNs are lost until it seems to have given up", func(s *script) { s.syns(0, 7, 15) }, outcome.GaveUp, 0},
		{"refused, and what follows is lost for long", func(s *script) { s.refused(); s.wait(7); s.refused() }, outcome.Refused, 0},
		{"a lost SYN between", func(s *script) { s.syns(0, 1, 2, 3, 4, 7, 11); s.synAck() }, outcome.Delayed, 11},
		{"the first SYN is repeated after three seconds", func(s *script) { s.syns(0, 3); s.synAck() }, outcome.Delayed, 3},
		{"the SYN-ACK is repeated to the end", func(s *script) { s.syn(); s.synAcks(0, 1, 3, 7, 15, 31) }, outcome.Undecided, 0},
		{"and was answered", func(s *script) {
			s.has(kernel.HalfOpenSocket)
			s.tracker.Widen(true)
			s.syn()
			s.synAcks(0, 1, 3, 7, 15, 31)
			s.acked()
			s.wait(64)
			s.tracker.Advance(s.at)
			s.has(kernel.OnlyListener)
		}, outcome.Stalled, 0},
		{"its ACK was dropped once", func(s *script) { s.syn(); s.synAcks(0, 1) }, outcome.Delayed, 1},
		{"its ACK was dropped twice", func(s *script) { s.syn(); s.synAcks(0, 1, 3); s.has(kernel.Connection) }, outcome.Delayed, 3},
		{"SYN-ACK lost, SYN and SYN-ACK repeated at once", func(s *script) {
			s.syn()
			s.synAck()
			s.wait(1)
			s.synAck()
			s.syn()
			s.synAck()
		}, outcome.Delayed, 1},
		{"nothing listens", func(s *script) { s.syn(); s.out(packet.FlagRST|packet.FlagACK, 0, s.isn+1) }, outcome.Refused, 0},
		{"nothing listens, three times (Windows)", func(s *script) {
			for range 3 {
				s.syn()
				s.out(packet.FlagRST|packet.FlagACK, 0, s.isn+1)
				s.wait(.5)
			}
		}, outcome.Refused, 0},
		{"tcp_abort_on_overflow", func(s *script) { s.syn(); s.synAck(); s.out(packet.FlagRST, serverISN+1, 0) }, outcome.Reset, 0},
		{"the listener closes", func(s *script) {
			s.syn()
			s.synAck()
			s.wait(.7)
			s.out(packet.FlagRST|packet.FlagACK, serverISN+1, s.isn+50)
		}, outcome.Reset, 0},
		{"reset after a response", func(s *script) { s.syn(); s.synAck(); s.out(packet.FlagRST, serverISN+300, 0) }, outcome.Connected, 0},
		{"a health check that ends with RST", func(s *script) {
			s.syn()
			s.synAck()
			s.in(packet.FlagRST|packet.FlagACK, s.isn+1, serverISN+1)
		}, outcome.Connected, 0},
		{"ended by RST, which crosses the server's FIN", func(s *script) {
			s.syn()
			s.synAck()
			s.in(packet.FlagRST|packet.FlagACK, s.isn+1, serverISN+1)
			s.in(packet.FlagRST, s.isn+1, 0)
		}, outcome.Connected, 0},
		{"the same the other way round", func(s *script) {
			s.syn()
			s.synAck()
			s.in(packet.FlagRST, s.isn+1, 0)
			s.in(packet.FlagRST|packet.FlagACK, s.isn+1, serverISN+1)
		}, outcome.Connected, 0},
		{"the client's host knows of no connection", func(s *script) { s.syn(); s.synAck(); s.in(packet.FlagRST, s.isn+1, 0) }, outcome.HalfOpen, 0},
		{"the client's host knows of no connection any more", func(s *script) { s.syns(0, 1); s.synAck(); s.in(packet.FlagRST, s.isn+1, 0) }, outcome.GaveUp, 0},
		{"a stalled client that loses patience", func(s *script) {
			s.syn()
			s.synAcks(0, 1)
			s.in(packet.FlagRST|packet.FlagACK, s.isn+80, serverISN+1)
		}, outcome.Stalled, 0},
		{"a forged RST", func(s *script) { s.syn(); s.synAck(); s.in(packet.FlagRST, s.isn+77, 0); s.out(packet.FlagRST, 77, 0) }, outcome.Connected, 0},
		{"a port in use: challenge ACK, RST, another SYN", func(s *script) {
			s.syn()
			s.in(packet.FlagRST, 777, 0)
			s.wait(1)
			s.syn()
			s.synAck()
		}, outcome.Delayed, 1},
		{"a port in use: the SYN that follows at once is lost, and the one after two seconds", func(s *script) {
			s.syn()
			s.in(packet.FlagRST, 777, 0)
			s.wait(6)
			s.syn()
			s.synAck()
		}, outcome.Delayed, 6},
		{"a port in use: the RST is lost, and the SYN after two seconds", func(s *script) {
			s.syn()
			s.at += 8 * time.Millisecond
			s.syn()
			s.at += 5992 * time.Millisecond
			s.syn()
			s.synAck()
		}, outcome.Delayed, 6},
		{"an answer that comes when the clients' segments are no longer observed", func(s *script) {
			s.tracker.Widen(true)
			s.syn()
			s.synAck()
			s.tracker.Widen(false)
		}, outcome.Connected, 0},
		{"no answer while they are observed again", func(s *script) {
			s.tracker.Widen(true)
			s.tracker.Widen(false)
			s.wait(1)
			s.tracker.Widen(true)
			s.syn()
			s.synAck()
		}, outcome.HalfOpen, 0},
		{"a port in use: each SYN for six seconds is challenged", func(s *script) {
			for _, wait := range []float64{0, 0.008, 2, 4} {
				s.wait(wait)
				s.syn()
				s.in(packet.FlagRST, 777, 0)
			}
			s.wait(8)
			s.syn()
			s.synAck()
		}, outcome.Delayed, 14.008},
		{"refused: the answer is lost, and the next SYN", func(s *script) {
			s.syn()
			s.out(packet.FlagRST|packet.FlagACK, 0, s.isn+1)
			s.wait(3)
			s.syn()
			s.out(packet.FlagRST|packet.FlagACK, 0, s.isn+1)
		}, outcome.Refused, 0},
		{"a SYN-ACK that the client rejects (PAWS), and another", func(s *script) {
			s.syn()
			s.synAck()
			s.in(packet.FlagRST, s.isn+1, 0)
			s.wait(3)
			s.syn()
			s.synAck()
		}, outcome.Delayed, 3},
		{"a port in use: it is reset, and the client does not come again", func(s *script) { s.syn(); s.in(packet.FlagRST, 777, 0) }, outcome.GaveUp, 0},
		{"TCP Fast Open: the SYN-ACK acknowledges data", func(s *script) {
			s.syn()
			s.out(packet.FlagSYN|packet.FlagACK, serverISN, s.isn+1+300)
		}, outcome.Connected, 0},
		{"a SYN-ACK of another connection", func(s *script) { s.syn(); s.out(packet.FlagSYN|packet.FlagACK, serverISN, s.isn-7) }, outcome.GaveUp, 0},
		{"a SYN cookie, and nothing more", func(s *script) {
			s.syn()
			s.synAck()
			s.tracker.Cookies(s.at-time.Second, s.at+time.Second)
		}, outcome.Undecided, 0},
		{"a SYN cookie, and an answer", func(s *script) {
			s.tracker.Widen(true)
			s.syn()
			s.synAck()
			s.acked()
			s.has(kernel.Connection)
			s.tracker.Cookies(s.at-time.Second, s.at+time.Second)
		}, outcome.Connected, 0},
		{"SYN cookies at another time", func(s *script) {
			s.tracker.Cookies(0, s.at-time.Second/2)
			s.syn()
			s.synAck()
			s.tracker.Cookies(s.at+time.Second/2, s.at+2*time.Second)
		}, outcome.Connected, 0},
		{"observed, and it never answered", func(s *script) {
			s.syn()
			s.synAcks(0, 1)
			s.tracker.Widen(true)
			s.wait(2)
			s.synAcks(0, 4, 12, 28)
		}, outcome.HalfOpen, 0},
		{"observed, it gives up while its last SYN is answered by a cookie", func(s *script) {
			s.has(kernel.OnlyListener)
			s.tracker.Widen(true)
			s.tracker.Cookies(0, time.Minute)
			s.tracker.Drops(port, 0, time.Minute)
			s.syns(0, 1, 2, 3, 4, 5, 7, 11)
			s.synAck()
		}, outcome.GaveUp, 0},
		{"the same where the kernel cannot be asked", func(s *script) {
			s.tracker.Widen(true)
			s.syns(0, 1, 3)
			s.synAck()
		}, outcome.GaveUp, 0},
		{"observed, it gives up while its last SYN is answered, and rejects the SYN-ACK that is repeated", func(s *script) {
			s.has(kernel.HalfOpenSocket)
			s.tracker.Widen(true)
			s.syns(0, 1, 3)
			s.synAcks(0, 1)
			s.in(packet.FlagRST, s.isn+1, 0)
		}, outcome.GaveUp, 0},
		{"its host knows nothing of it when the SYN-ACK is repeated, and its answer may not have been read", func(s *script) {
			s.syns(0, 1, 3)
			s.synAck()
			s.tracker.Widen(true)
			s.wait(1)
			s.synAck()
			s.in(packet.FlagRST, s.isn+1, 0)
		}, outcome.Stalled, 0},
		{"observed, it answered, and was not let in", func(s *script) {
			s.syn()
			s.synAcks(0, 1)
			s.tracker.Widen(true)
			s.wait(2)
			s.synAck()
			s.acked()
			s.wait(4)
			s.synAcks(0, 8, 24)
		}, outcome.Stalled, 0},
		{"a check that was let in late, and ends in one millisecond with the server's end of it", func(s *script) {
			s.tracker.Widen(true)
			s.syns(0, 2)
			s.synAck()
			s.acked()
			s.has(kernel.Connection)
			s.wait(.13)
			s.in(packet.FlagFIN|packet.FlagACK, clientISN+1, serverISN+1)
			s.out(packet.FlagFIN|packet.FlagACK, serverISN+1, clientISN+2)
			s.in(packet.FlagACK, clientISN+2, serverISN+2)
			s.has(kernel.OnlyListener)
		}, outcome.Delayed, 2},
		{"observed, let in after the last SYN-ACK", func(s *script) {
			s.tracker.Widen(true)
			s.syn()
			s.synAcks(0, 1, 3, 7, 15, 31)
			s.acked()
			s.wait(5)
			s.served()
		}, outcome.Delayed, 31},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t, Options{})
			test.play(s)
			e := s.ends()
			require.Equal(t, just(test.want), e.Clients)
			if test.want == outcome.Delayed {
				require.InDelta(t, test.delay, e.Delays.Sum, .0015)
				require.EqualValues(t, 1, e.Delays.Count)
				require.InDelta(t, test.delay, e.Delays.Shortest.Seconds(), .0015)
				require.Equal(t, e.Delays.Shortest, e.Delays.Longest)
				require.Zero(t, s.tracker.Report()[0].Delays.Longest, "since the report before")
			}
		})
	}
}

// With many half-open clients the kernel repeats a SYN-ACK but twice, and then gives the
// client up: only its connections say who was let in.
func TestRepeatedToTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		retries int
		synAcks []float64
		met     kernel.Socket // after the last of them
		want    outcome.Outcome
	}{
		"twice, a connection":            {0, []float64{0, 1, 3}, kernel.Connection, outcome.Delayed},
		"twice, none":                    {0, []float64{0, 1, 3}, kernel.OnlyListener, outcome.Stalled},
		"twice, not known":               {0, []float64{0, 1, 3}, kernel.SocketUnknown, outcome.Stalled},
		"as often as allowed, let in":    {1, []float64{0, 1}, kernel.Connection, outcome.Delayed},
		"as often as allowed, not known": {1, []float64{0, 1}, kernel.SocketUnknown, outcome.Stalled},
		"none allowed, let in":           {-1, []float64{0}, kernel.Connection, outcome.Connected},
		"none allowed, stalled":          {-1, []float64{0}, kernel.OnlyListener, outcome.Stalled},
	} {
		t.Run(name, func(t *testing.T) {
			met := kernel.HalfOpenSocket
			s := newScript(t, Options{SynAckRetries: c.retries, Socket: func(to, from netip.AddrPort, device uint32) kernel.Found {
				require.Equal(t, server, to)
				require.Equal(t, "10.0.0.7:40000", from.String())
				require.EqualValues(t, 2, device)
				return kernel.Found{Socket: met}
			}})
			s.tracker.Widen(true)
			s.syn()
			s.tracker.Drops(port, s.at, s.at+time.Minute)
			s.synAcks(c.synAcks...)
			s.acked()
			met = c.met
			require.Equal(t, just(c.want), s.ends().Clients)
		})
	}
}

func sumOf(clients [outcome.NumOutcomes]uint64) (n uint64) {
	for _, c := range clients {
		n += c
	}
	return n
}

// A client that was taken to have given up, and comes again, is let in late. Of the many
// that are remembered the oldest are forgotten, as are those that cannot come again.
func TestComesAgain(t *testing.T) {
	s := newScript(t, Options{})
	s.syns(0, 7)
	s.synAck()
	e := s.ends()
	require.Equal(t, [outcome.NumOutcomes]uint64{outcome.GaveUp: 1, outcome.Delayed: 1}, e.Clients)
	require.Equal(t, 7*time.Second, e.Delays.Longest)

	s.wait(600)
	for i := range uint32(recall.MaxEnded + 10) {
		s.client(fmt.Sprintf("10.1.%d.%d:5000", i>>8, i&255), i).refused()
	}
	s.wait(1)
	s.tracker.Advance(s.at + timers.FirstSYN)
	require.Equal(t, recall.MaxEnded, s.tracker.ended.Len())
	s.client("10.1.0.20:5000", 20).refused()
	s.wait(10)
	s.tracker.Advance(s.at)
	require.EqualValues(t, recall.MaxEnded+10, s.ends().Clients[outcome.Refused])
	require.Zero(t, s.tracker.ended.Len())
}

// Whichever of a client's SYNs the network loses, it is one client: of Linux before 6.5,
// which repeats them after 1, 3, 7, 15 and 31 s, and of later ones.
func TestLostSYNs(t *testing.T) {
	for _, times := range [][]float64{{0, 1, 3, 7, 15, 31}, {0, 1, 2, 3, 4, 5, 7, 11, 19}} {
		for arrives := 1; arrives < 1<<len(times); arrives++ {
			s := newScript(t, Options{})
			start := s.at
			for i, seconds := range times {
				if arrives>>i&1 != 0 {
					s.at = start + time.Duration(seconds*float64(time.Second))
					s.syn()
				}
			}
			for range 150 { // as the clock goes
				s.wait(1)
				s.tracker.Advance(s.at)
			}
			require.Equal(t, just(outcome.GaveUp), s.ends().Clients, "%v: %b", times, arrives)
		}
	}
}

// A client that uses its port again within a minute is another client, and its
// first attempt is over.
func TestPortReuse(t *testing.T) {
	s := newScript(t, Options{})
	s.syn()
	s.synAck()
	s.in(packet.FlagRST|packet.FlagACK, s.isn+1, serverISN+1)
	s.wait(.2)
	second := s.client(s.from.String(), 777_777)
	second.syn()
	second.wait(.3)
	third := second.client(s.from.String(), 888_888)
	third.syns(0, 1)
	third.synAck()
	e := third.ends()
	require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1, outcome.GaveUp: 1, outcome.Delayed: 1}, e.Clients)
}

// A restart: refused between the old listener and the new, whose sockets the
// packets do not distinguish; nor those of SO_REUSEPORT.
func TestListenerRestarts(t *testing.T) {
	s := newScript(t, Options{})
	for i := range 30 {
		c := s.client(fmt.Sprintf("10.0.0.%d:5000", 10+i), uint32(i))
		c.syn()
		if i >= 10 && i < 20 {
			c.out(packet.FlagRST|packet.FlagACK, 0, c.isn+1)
		} else {
			c.synAck()
		}
		s.wait(.01)
	}
	require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 20, outcome.Refused: 10}, s.ends().Clients)
}

// Bridges and bonds show a packet once for each device.
func TestSamePacketOnTwoDevices(t *testing.T) {
	s := newScript(t, Options{})
	both := func(flags uint8, in bool, seq, ack uint32) {
		for index := range uint32(2) {
			segment := packet.Segment{
				Link: packet.Link{Incoming: in, Outgoing: !in, Index: 2 + index}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(),
				Dst: server.Addr().As16(), DstPort: port, Flags: flags, Seq: seq, Ack: ack,
			}
			if !in {
				segment.Src, segment.Dst, segment.SrcPort, segment.DstPort = segment.Dst, segment.Src, port, s.from.Port()
			}
			s.observe(segment)
			s.at += time.Microsecond
		}
	}
	both(packet.FlagSYN, true, s.isn, 0)
	both(packet.FlagSYN|packet.FlagACK, false, serverISN, s.isn+1)
	require.Equal(t, just(outcome.Connected), s.ends().Clients)
}

// A local route can be to many addresses.
func TestLocalPrefix(t *testing.T) {
	for prefix, want := range map[string]int{"10.0.0.0/8": 1, "0.0.0.0/0": 1, "10.1.0.0/16": 0, "::/0": 0} {
		s := newScript(t, Options{})
		s.tracker.SetLocal([]netip.Prefix{netip.MustParsePrefix(prefix)})
		s.syn()
		require.Len(t, s.tracker.Report(), want, prefix)
		require.EqualValues(t, 1-want, s.tracker.Foreign(), prefix)
	}
}

// What a tap must not count: other ports, the host's own clients, what it
// forwards.
func TestOthersAreNotCounted(t *testing.T) {
	s := newScript(t, Options{})
	s.tracker.SetLocal([]netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")})
	syn := packet.Segment{Link: packet.Link{Incoming: true}, Src: s.from.Addr().As16(), SrcPort: 1, Dst: server.Addr().As16(), DstPort: port, Flags: packet.FlagSYN}
	other := syn
	other.DstPort = port + 1
	own := syn
	own.Incoming, own.Outgoing = false, true
	forwarded := syn
	forwarded.Dst = netip.MustParseAddr("10.0.0.99").As16()
	for _, segment := range []packet.Segment{other, own, forwarded} {
		s.observe(segment)
	}
	require.Empty(t, s.tracker.Report())
	require.EqualValues(t, 1, s.tracker.Foreign())
	s.observe(syn)
	require.Equal(t, just(outcome.GaveUp), s.ends().Clients)
}

func TestSetPortsForgetsWhatIsOpen(t *testing.T) {
	s := newScript(t, Options{})
	s.syn()
	s.tracker.SetPorts([]uint16{port + 1})
	last := s.ends()
	require.Zero(t, sumOf(last.Clients))
	require.True(t, last.Ended)
	s.syn()
	require.Empty(t, s.tracker.Report())
}

// However many ports are followed one after the other, with a client each, nothing is kept of
// those that no longer are, and what is reported of the one that stays is complete.
func TestEndpointsByChurn(t *testing.T) {
	s := newScript(t, Options{})
	for i := range 100_000 {
		other := uint16(1024 + i%50_000)
		if other == port {
			continue
		}
		s.tracker.SetPorts([]uint16{port, other})
		s.at += time.Millisecond
		s.syn()
		s.observe(packet.Segment{
			Link: packet.Link{Incoming: true, Index: 2}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(), Flags: packet.FlagSYN, Seq: 1,
			Dst: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).As16(), DstPort: other,
		})
		s.tracker.Report()
	}
	require.LessOrEqual(t, len(s.tracker.endpoints.list), 4)
	require.LessOrEqual(t, s.tracker.endpoints.Len(), 4)
	s.tracker.SetPorts([]uint16{port})
	s.tracker.Report()
	require.NotZero(t, sumOf(s.ends().Clients))
}

// Of an attempt that is open a report says where it stands.
func TestOpen(t *testing.T) {
	s := newScript(t, Options{})
	stages := func() [3]int {
		e := s.tracker.Report()[0]
		return [3]int{e.Waiting, e.Settling, e.Stalling}
	}
	s.syn()
	require.Equal(t, [3]int{1, 0, 0}, stages())
	require.False(t, s.tracker.Stalling())
	s.synAck()
	require.Equal(t, [3]int{0, 1, 0}, stages())
	s.wait(1)
	s.synAck()
	require.Equal(t, [3]int{0, 0, 1}, stages())
	require.True(t, s.tracker.Stalling())
	s.ends()
}

// Who was refused tries no more, also before that is counted.
func TestRefusedIsNotWaiting(t *testing.T) {
	s := newScript(t, Options{})
	s.refused()
	e := s.tracker.Report()[0]
	require.Equal(t, [2]int{0, 1}, [2]int{e.Waiting, e.Settling})
	require.EqualValues(t, 1, s.ends().Clients[outcome.Refused])
}

// Beyond the limit clients are counted, each once however often it repeats its
// SYN, and not followed.
func TestBeyondTheLimit(t *testing.T) {
	const limit, clients = 1000, 101_000
	s := newScript(t, Options{MaxOpen: limit})
	for range 2 {
		for i := range uint32(clients) {
			var ip [4]byte
			binary.BigEndian.PutUint32(ip[:], 11<<24+i)
			s.from = netip.AddrPortFrom(netip.AddrFrom4(ip), 1234)
			s.syn()
		}
		s.wait(1)
	}
	e := s.ends()
	require.EqualValues(t, limit, sumOf(e.Clients))
	require.InEpsilon(t, clients-limit, e.Untracked, .01)
}

func TestLosersAndBalancer(t *testing.T) {
	s := newScript(t, Options{})
	for i := range 300 {
		s.client(fmt.Sprintf("10.0.1.1:%d", 1000+i), 1).syn()
	}
	for i := range 200 { // more addresses than there are slots, none of them heavy
		s.client(fmt.Sprintf("10.0.2.%d:99", i), 1).syn()
	}
	for i := range 50 {
		c := s.client(fmt.Sprintf("10.0.3.1:%d", 1000+i), 1)
		c.syn()
		c.out(packet.FlagRST|packet.FlagACK, 0, 2)
	}
	s.wait(20)
	s.tracker.Advance(s.at)
	e := s.tracker.Report()[0]
	require.Equal(t, outcome.Source{Addr: netip.MustParseAddr("10.0.1.1"), Clients: 300}, e.Losers[0])
	require.Equal(t, outcome.Source{Addr: netip.MustParseAddr("10.0.3.1"), Clients: 50}, e.Losers[1])
	require.LessOrEqual(t, len(e.Losers), 5)
	require.Equal(t, e.Losers[0], *e.Balancer)
	require.EqualValues(t, 550, e.Failed())
	require.Nil(t, e.Flood)

	s.wait(300)
	s.tracker.Advance(s.at)
	e = s.tracker.Report()[0]
	require.Empty(t, e.Losers, "that was minutes ago")
	require.Nil(t, e.Balancer)
}

// A flood's addresses come once, send one SYN and do not answer.
func TestFlood(t *testing.T) {
	attack := func(s *script, n int, play func(c *script)) *outcome.Flood {
		for i := range n {
			play(s.client(fmt.Sprintf("10.%d.%d.%d:%d", 1+i>>16, i>>8&255, i&255, 1000+i%1000), uint32(i)))
		}
		s.wait(4.5)
		s.tracker.Advance(s.at)
		return s.tracker.Report()[0].Flood
	}
	cookies := func(s *script) { s.tracker.Cookies(s.at-time.Second, s.at+time.Second) }

	s := newScript(t, Options{})
	cookies(s)
	require.Nil(t, attack(s, 5000, func(c *script) { c.syn(); c.synAck() }), "nobody looked whether they answer")

	s = newScript(t, Options{})
	s.tracker.Widen(true)
	flood := attack(s, 5000, func(c *script) { c.syn(); c.synAck() })
	require.NotNil(t, flood)
	require.EqualValues(t, 5000, flood.Attempts)
	require.True(t, flood.Certain)
	require.InEpsilon(t, 5000, flood.Sources, .05)
	s.wait(6)
	flood = attack(s, 1500, func(c *script) { c.syn(); c.synAck() })
	require.EqualValues(t, 5000, flood.Attempts, "of the period that had more")
	s.wait(60)
	s.tracker.Advance(s.at)
	require.Nil(t, s.tracker.Report()[0].Flood, "it is over")

	s = newScript(t, Options{})
	flood = attack(s, 5000, func(c *script) { c.syn() })
	require.False(t, flood.Certain, "or clients with a short connect timeout, and a full queue")
	s = newScript(t, Options{})
	require.Nil(t, attack(s, 5000, func(c *script) {
		c.from = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(c.isn >> 9), byte(c.isn >> 1)}), uint16(c.isn))
		c.syn()
	}), "clients that come twice")
	s = newScript(t, Options{})
	require.Nil(t, attack(s, 5000, func(c *script) { c.syn(); c.synAck() }), "a burst that is let in")
	s = newScript(t, Options{})
	s.tracker.Widen(true)
	cookies(s)
	require.Nil(t, attack(s, 5000, func(c *script) { c.syn(); c.synAck(); c.acked() }), "a burst that is let in with cookies")
	s = newScript(t, Options{})
	s.tracker.Widen(true)
	require.Nil(t, attack(s, 5000, func(c *script) {
		c.from = netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(c.isn))
		c.syn()
		c.synAck()
	}), "one source: a scan or a broken client")
}

// A steady stream allocates nothing.
func TestNoAllocations(t *testing.T) {
	tracker, packets := benchmark(t)
	at := time.Second
	one := func() {
		at += time.Millisecond
		for i := range packets {
			observe(t, tracker, at, packets[i], packet.Link{Incoming: true, Outgoing: true, Index: 1, Length: 60, Verified: true})
		}
		tracker.Advance(at)
	}
	for range 10_000 {
		one()
	}
	require.Zero(t, testing.AllocsPerRun(1000, one))
}

func observe(tb testing.TB, tracker *Tracker, at time.Duration, raw []byte, link packet.Link) {
	s, err := packet.Decode(raw, link)
	if err != nil {
		tb.Fatal(err)
	}
	tracker.Observe(at, &s)
}

// benchmark is a SYN and its SYN-ACK; the client's port counts on.
func benchmark(tb testing.TB) (*Tracker, [][]byte) {
	tracker := NewTracker(Options{})
	tracker.SetPorts([]uint16{port})
	from, to := netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("127.0.0.1:8080")
	return tracker, [][]byte{
		nettest.TCP4(from, to, packet.FlagSYN, clientISN, 0),
		nettest.TCP4(to, from, packet.FlagSYN|packet.FlagACK, serverISN, clientISN+1),
	}
}

// BenchmarkHandshake is the tap's work for a new connection: two packets are
// decoded and followed.
func BenchmarkHandshake(b *testing.B) {
	tracker, packets := benchmark(b)
	at := time.Second
	link := packet.Link{Incoming: true, Outgoing: true, Index: 1, Length: 60, Verified: true}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at += 100 * time.Microsecond // 10,000 clients a second
		binary.BigEndian.PutUint16(packets[0][20:], uint16(i))
		binary.BigEndian.PutUint16(packets[1][22:], uint16(i))
		binary.BigEndian.PutUint32(packets[0][24:], uint32(i)+clientISN)
		binary.BigEndian.PutUint32(packets[1][28:], uint32(i)+clientISN+1)
		observe(b, tracker, at, packets[0], link)
		observe(b, tracker, at, packets[1], link)
		if i%256 == 0 {
			tracker.Advance(at)
		}
	}
}
