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
			s := unheardScript(t, Options{}, 2, 1)
			repeats := func() {
				s.sends(packet.FlagACK|packet.FlagFIN, 1, request)
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

// unheardScript is of a client whose answer to a SYN cookie was dropped.
func unheardScript(t *testing.T, o Options, device uint32, syns int) *script {
	s := newScript(t, o)
	s.device = device
	s.tracker.Widen(true)
	s.tracker.Cookies(0, time.Minute)
	s.tracker.Drops(port, 0, time.Minute)
	s.has(kernel.OnlyListener)
	for range syns - 1 {
		s.syn()
		s.wait(1)
	}
	s.syn()
	s.synAck()
	s.acked()
	return s
}

// A client that comes late to its request shuts down its side behind that, be its handshake long over. On the loopback its
// own socket shows whether it waits for the answer, whenever its FIN comes.
func TestShutBehindALateRequest(t *testing.T) {
	const request, response, elsewhere = 100, 400, 2
	for _, tt := range []struct {
		name   string
		device uint32
		syns   int
		stays  float64 // seconds
		own    kernel.Client
		waits  bool
	}{
		{"at once", elsewhere, 1, .001, kernel.ClientUnknown, true},
		{"at a timeout", elsewhere, 1, .21, kernel.ClientUnknown, false},
		{"as its host sends one segment at a time", elsewhere, 3, .21, kernel.ClientUnknown, true},
		{"at a timeout, later", elsewhere, 3, .5, kernel.ClientUnknown, false},
		{"at once, on the loopback", packet.Loopback, 1, .001, kernel.ClientUnknown, true},
		{"late, on the loopback", packet.Loopback, 1, .5, kernel.ClientShut, true},
		{"it leaves at once, on the loopback", packet.Loopback, 1, .001, kernel.ClientLeft, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			own, met := kernel.ClientUnknown, kernel.OnlyListener
			s := unheardScript(t, Options{Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found {
				return kernel.Found{Socket: met, Client: own}
			}}, tt.device, tt.syns)
			s.wait(.4)
			s.sends(packet.FlagACK, 1, request)
			s.wait(tt.stays)
			own = tt.own
			s.sends(packet.FlagACK|packet.FlagFIN, 1+request, 0)
			s.tracker.Ask(s.at)
			s.wait(.2)
			s.tracker.Advance(s.at)
			known := s.tracker.Report()[0].Clients
			s.wait(2)
			met = kernel.Connection
			s.sends(packet.FlagACK|packet.FlagFIN, 1, request)
			s.tracker.Ask(s.at)
			s.wait(2)
			s.out(packet.FlagFIN|packet.FlagACK, serverISN+response+1, s.isn+request+2)
			met, own = kernel.OnlyListener, kernel.ClientUnknown
			e := s.ends()
			if !tt.waits {
				require.Equal(t, just(outcome.Stalled), known, "at once")
				require.Equal(t, just(outcome.Stalled), e.Clients)
				require.EqualValues(t, 1, e.LetInLate)
				return
			}
			require.Zero(t, known, "nothing is known yet")
			require.Equal(t, just(outcome.Delayed), e.Clients)
			require.Equal(t, outcome.Answers{Answered: 1}, e.Answers)
		})
	}
}

// Who was let in, and ends its side at once behind the end of what it sends slowly, may wait for the answer: what comes
// next tells, or, on the loopback, its own socket.
func TestShutBehindASlowRequest(t *testing.T) {
	const request, response, elsewhere = 100, 400, 2
	for _, tt := range []struct {
		name   string
		device uint32
		stays  float64 // seconds
		own    kernel.Client
		want   outcome.Answers
	}{
		{"at once", elsewhere, .001, kernel.ClientUnknown, outcome.Answers{Answered: 1}},
		{"at a timeout", elsewhere, .5, kernel.ClientUnknown, outcome.Answers{Unanswered: 1}},
		{"late, on the loopback", packet.Loopback, .5, kernel.ClientShut, outcome.Answers{Answered: 1}},
		{"it leaves, on the loopback", packet.Loopback, .5, kernel.ClientLeft, outcome.Answers{Unanswered: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			own, met := kernel.ClientUnknown, kernel.Connection
			s := newScript(t, Options{Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found {
				return kernel.Found{Socket: met, Client: own}
			}})
			s.device = tt.device
			s.tracker.Widen(true)
			s.syn()
			s.synAck()
			s.acked()
			for n := range 4 {
				s.wait(.4)
				s.sends(packet.FlagACK, 1+n*request/4, request/4)
			}
			s.wait(tt.stays)
			own = tt.own
			s.sends(packet.FlagACK|packet.FlagFIN, 1+request, 0)
			s.wait(2)
			s.out(packet.FlagFIN|packet.FlagACK, serverISN+response+1, s.isn+request+2)
			s.wait(.01)
			met = kernel.NoSocket
			e := s.ends()
			require.Equal(t, just(outcome.Connected), e.Clients)
			require.Equal(t, tt.want, e.Answers)
		})
	}
}

// Whose SYN was dropped at first is let in when it answers the SYN-ACK: its FIN behind the request that follows has waited
// for nothing.
func TestShutWhenItIsLetInLate(t *testing.T) {
	const request, response = 100, 400
	for _, tt := range []struct {
		name  string
		waits float64 // seconds between its request and that it is taken
		want  outcome.Outcome
	}{
		{"its request is taken as it comes", 0, outcome.Delayed},
		{"its request came before", 3, outcome.Stalled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, Options{})
			s.tracker.Widen(true)
			s.tracker.Drops(port, 0, time.Minute)
			s.tracker.Cookies(0, time.Minute)
			s.has(kernel.OnlyListener)
			s.syns(0, 1)
			s.synAck()
			s.wait(.001)
			s.acked()
			s.sends(packet.FlagACK, 1, request)
			s.tracker.Ask(s.at)
			s.wait(tt.waits)
			s.has(kernel.Connection)
			s.sends(packet.FlagACK, 1, request)
			s.tracker.Ask(s.at)
			s.wait(.003)
			s.sends(packet.FlagACK|packet.FlagFIN, 1+request, 0)
			s.wait(3)
			s.out(packet.FlagFIN|packet.FlagACK, serverISN+response+1, s.isn+request+2)
			s.has(kernel.OnlyListener)
			require.Equal(t, just(tt.want), s.ends().Clients)
		})
	}
}

// Who was let in late, and says later that it closes, as a client of TLS does, was there by then: what had waited until it
// was let in follows at once.
func TestSaysThatItCloses(t *testing.T) {
	const request, notify = 100, 31
	for _, tt := range []struct {
		name  string
		after float64 // seconds after it was let in
		want  outcome.Outcome
	}{
		{"at once", .003, outcome.Stalled},
		{"later", .34, outcome.Delayed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := unheardScript(t, Options{}, 2, 1)
			for _, wait := range []float64{.001, .3, .6, 1} {
				s.wait(wait)
				s.sends(packet.FlagACK, 1, request)
				s.tracker.Ask(s.at)
			}
			s.wait(.001)
			s.has(kernel.Connection)
			s.sends(packet.FlagACK, 1, request)
			s.tracker.Ask(s.at)
			s.wait(tt.after)
			s.late = true // what follows is read in one go
			s.sends(packet.FlagACK, 1+request, notify)
			s.sends(packet.FlagACK|packet.FlagFIN, 1+request+notify, 0)
			s.wait(3)
			s.out(packet.FlagRST|packet.FlagACK, serverISN+1, s.isn+request+notify+2)
			s.has(kernel.OnlyListener)
			require.Equal(t, just(tt.want), s.ends().Clients)
		})
	}
}

// lateEnd plays a client whose FIN comes half a second behind its request, when it has long been let in, or before.
type lateEnd struct{ *script }

const lateRequest, lateResponse = 100, 400

func (c lateEnd) begins(before kernel.Socket) {
	c.tracker.Cookies(c.at, c.at+time.Minute)
	c.tracker.Drops(port, c.at, c.at+time.Minute)
	c.tracker.Widen(true)
	c.has(before)
	c.syn()
	c.synAck()
	c.acked()
	c.wait(.001)
	c.sends(packet.FlagACK, 1, lateRequest)
	c.tracker.Ask(c.at)
	c.wait(.5)
	c.sends(packet.FlagACK|packet.FlagFIN, 1+lateRequest, 0)
	c.tracker.Ask(c.at)
	c.wait(.2)
	c.tracker.Advance(c.at)
}

// answered: it repeats what it has sent, and is let in by that.
func (c lateEnd) answered(response uint32) {
	c.wait(1)
	c.has(kernel.Connection)
	c.sends(packet.FlagACK|packet.FlagFIN, 1, lateRequest)
	c.tracker.Ask(c.at)
	c.wait(1)
	c.tracker.Advance(c.at)
	c.out(packet.FlagFIN|packet.FlagACK, serverISN+response+1, c.isn+lateRequest+2)
}

func (c lateEnd) takes(response uint32) {
	c.answered(response)
	c.in(packet.FlagACK, c.isn+lateRequest+2, serverISN+response+2)
}

func (c lateEnd) rejects() {
	c.answered(lateResponse)
	c.in(packet.FlagRST, c.isn+lateRequest+2, 0)
}

func (c lateEnd) turnedAway() uint64 {
	e := c.tracker.Report()[0]
	return e.Failed() + e.Answers.Unanswered
}

// One whose FIN comes late has most likely left: it is counted as turned away at once. If it takes its answer it has only
// ended its side, and that is corrected.
func TestTakesTheAnswerBehindALateFIN(t *testing.T) {
	stalled, delayed, connected := just(outcome.Stalled), just(outcome.Delayed), just(outcome.Connected)
	for _, tt := range []struct {
		name    string
		before  kernel.Socket
		play    func(c lateEnd)
		first   [outcome.NumOutcomes]uint64
		then    [outcome.NumOutcomes]uint64
		answers outcome.Answers
	}{
		{"let in late, it takes the answer", kernel.OnlyListener, func(c lateEnd) { c.takes(lateResponse) }, stalled, delayed, outcome.Answers{Answered: 1}},
		{"let in late, it rejects it", kernel.OnlyListener, lateEnd.rejects, stalled, stalled, outcome.Answers{}},
		{"let in late, and nothing more is read", kernel.OnlyListener, func(c lateEnd) { c.answered(lateResponse) }, stalled, stalled, outcome.Answers{}},
		{"let in late, and there is no answer", kernel.OnlyListener, func(c lateEnd) { c.takes(0) }, stalled, stalled, outcome.Answers{}},
		{"never let in", kernel.OnlyListener, func(lateEnd) {}, stalled, stalled, outcome.Answers{}},
		{"inside, it takes the answer", kernel.Connection, func(c lateEnd) { c.takes(lateResponse) }, connected, connected, outcome.Answers{Answered: 1}},
		{"inside, it rejects it", kernel.Connection, lateEnd.rejects, connected, connected, outcome.Answers{Unanswered: 1}},
		{"inside, and nothing more is read", kernel.Connection, func(c lateEnd) { c.answered(lateResponse) }, connected, connected, outcome.Answers{Unanswered: 1}},
		{"inside, and there is no answer", kernel.Connection, func(c lateEnd) { c.takes(0) }, connected, connected, outcome.Answers{Unanswered: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := lateEnd{newScript(t, Options{})}
			c.begins(tt.before)
			require.Equal(t, tt.first, c.tracker.Report()[0].Clients)
			require.EqualValues(t, 1, c.turnedAway(), "at once")
			tt.play(c)
			c.has(kernel.OnlyListener)
			e := c.ends()
			require.Equal(t, tt.then, e.Clients)
			require.Equal(t, tt.answers, e.Answers)
			require.Equal(t, e.Clients[outcome.Connected]+e.Clients[outcome.Delayed], e.LetIn)
			require.Equal(t, e.Clients[outcome.Delayed], e.Delays.Count)
		})
	}
}

// Where the latest such client took its answer, the next ones are turned away when they are known to have left.
func TestOthersTakeTheAnswerBehindALateFIN(t *testing.T) {
	for name, before := range map[string]kernel.Socket{"let in late": kernel.OnlyListener, "inside": kernel.Connection} {
		t.Run(name, func(t *testing.T) {
			s, port := newScript(t, Options{}), uint16(41_000)
			next := func() lateEnd {
				port++
				s.at = max(s.at, s.tracker.now) + time.Minute
				c := lateEnd{s.client(netip.AddrPortFrom(s.from.Addr(), port).String(), uint32(port))}
				c.begins(before)
				return c
			}
			next().takes(lateResponse)
			takes := next()
			require.Zero(t, takes.turnedAway(), "not at once")
			takes.takes(lateResponse)
			takes.has(kernel.OnlyListener)
			takes.ends()
			require.Zero(t, takes.turnedAway())
			silent := next()
			require.Zero(t, silent.turnedAway(), "not at once")
			silent.has(kernel.OnlyListener)
			silent.ends()
			require.EqualValues(t, 1, silent.turnedAway(), "it is never let in, or never answered")
			rejects := next()
			require.EqualValues(t, 1, rejects.turnedAway(), "not at once")
			rejects.rejects()
			rejects.has(kernel.OnlyListener)
			rejects.ends()
			require.EqualValues(t, 2, rejects.turnedAway())
			require.EqualValues(t, 3, next().turnedAway(), "at once")
		})
	}
}
