package handshake

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// random is a server, and its clients.
func newSimulated(r *rand.Rand) *simulated {
	m := &simulated{
		rand: r, backlog: 1 + r.IntN(20), slots: 1 + r.IntN(40), threads: 1 + r.IntN(8),
		cookies: []int{0, 1, 1, 2}[r.IntN(4)], abort: r.IntN(4) == 0, retries: []int{5, 5, 2}[r.IntN(3)],
	}
	m.service = m.between(time.Millisecond, 2*time.Second)
	m.oneWay = m.between(0, 50*time.Millisecond)
	if r.IntN(3) == 0 {
		m.loss = .03 * r.Float64()
	}
	m.tracker = NewTracker(Options{SynAckRetries: m.retries, Socket: m.found, Clock: func() time.Duration { return m.now }})
	m.tracker.SetPorts([]uint16{port})
	connect, read, spread := m.between(time.Second/2, 30*time.Second), m.between(time.Second, 30*time.Second), m.between(time.Millisecond, 10*time.Second)
	for i := range 30 + r.IntN(300) {
		c := &simulatedClient{m: m, port: uint16(firstSimulated + i), isn: r.Uint32(), check: r.IntN(8) == 0, connect: connect, read: read}
		m.clients = append(m.clients, c)
		m.after(time.Second+m.between(0, spread), c.start)
	}
	m.lag = time.Duration(len(m.clients)%3) * 40 * time.Millisecond
	return m
}

// The second conservation, over random traces of a simulated kernel: who was let in, be it
// after it had left, is who the kernel made a socket for, and never more at any moment. Where
// no packet is lost each client's outcome is its own account's.
func TestSockets(t *testing.T) {
	// No answer to a SYN-ACK was read of those whose FIN waits for the socket of a client that is far away.
	for _, i := range []uint64{312, 473} {
		conserves(t, 1795718358692627488, i, false)
	}
	conserves(t, 1795830196950006520, 1702, false) // the kernel is asked between what was taken and the FIN that waited for it
	conserves(t, 17960022, 34, false)              // their kernels give up what they repeat when they have been let in
	conserves(t, 2609251097154904716, 354, false)  // the answer to a SYN cookie is lost, and the FIN dropped
	conserves(t, 2609251097154904716, 1144, true)  // the kernel knows of an answer before the repeated SYN is read
	conserves(t, 2609251097154904716, 1556, false) // it is asked twice about sockets that are gone, before their end is read
	seed := seedOf(t)
	for i := range proof.Size(2000, 30) {
		conserves(t, seed, uint64(i), false)
		conserves(t, seed, uint64(i), true)
	}
}

// conserves plays one trace.
func conserves(t *testing.T, seed, i uint64, slow bool) {
	m := newSimulated(rand.New(rand.NewPCG(seed, i)))
	m.slow = slow
	say := fmt.Sprintf("seed %d, %d, slow %v: %d clients, backlog %d, slots %d, threads %d, cookies %d, abort %v, retries %d, %v a request, %v each way, %.3f lost",
		seed, i, slow, len(m.clients), m.backlog, m.slots, m.threads, m.cookies, m.abort, m.retries, m.service, m.oneWay, m.loss)
	m.run(func() {
		for _, e := range m.tracker.endpoints.list {
			got := e.report(m.tracker.now)
			require.LessOrEqual(t, got.LetIn+got.LetInLate, m.opened, say)
		}
	})
	m.check(t, say)
}

// seedOf is a fresh one as a proof, or TCPDIAG_SOCKETS_SEED; else always the same.
func seedOf(t *testing.T) uint64 {
	if v := os.Getenv("TCPDIAG_SOCKETS_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		require.NoError(t, err)
		return seed
	}
	return uint64(proof.Size(int(time.Now().UnixNano()), 41))
}

func (m *simulated) check(t *testing.T, say string) {
	e := m.tracker.Report()[0]
	var want [outcome.NumOutcomes]uint64
	letIn, made, either := uint64(0), uint64(0), uint64(0)
	for _, c := range m.clients {
		in := c.hasMade && c.made <= c.left
		crossing := 2*m.oneWay + pendingFIN*time.Millisecond
		if m.slow {
			crossing += slowest
		}
		if c.hasMade && (c.pending && (in || m.slow) || (c.made-c.left).Abs() <= crossing || (c.takenAt-c.left).Abs() <= crossing) {
			either++ // no packet shows when it left
		}
		if c.hasMade {
			made++
		}
		switch {
		case in:
			letIn++
		case c.failed:
			want[c.how]++
		default:
			want[outcome.Stalled]++
		}
	}
	say += fmt.Sprintf("; clients %v, let in %d of %d sockets; tap %v, let in %d, late %d", want, letIn, made, e.Clients, e.LetIn, e.LetInLate)
	require.Equal(t, made, m.opened, say)
	n := uint64(len(m.clients))
	lost := math.Ceil(float64(n) * 6 * m.loss)
	off := float64(max(3, n/100)+either) + lost // some leave at the very moment at which they are let in
	require.LessOrEqual(t, e.LetIn+e.LetInLate, made, say)
	require.GreaterOrEqual(t, float64(e.LetIn+e.LetInLate+e.Clients[outcome.Undecided])+lost, float64(made), say)
	require.LessOrEqual(t, float64(e.Clients[outcome.Undecided]), off, say)
	require.InDelta(t, letIn, e.LetIn, off, say)
	require.InDelta(t, want[outcome.GaveUp], e.Clients[outcome.GaveUp], off, say)
	require.InDelta(t, want[outcome.Stalled]+want[outcome.Reset], e.Clients[outcome.Stalled]+e.Clients[outcome.Reset], off, say)
}

// Who is counted as stalled because nothing came of it for long, and is let in after all, has
// left: it is one of the sockets, and no client that was let in and had no answer.
func TestLetInAfterItsSilence(t *testing.T) {
	s := newScript(t, Options{})
	s.tracker.Widen(true)
	s.has(kernel.OnlyListener)
	s.syn()
	s.synAck()
	data := func() {
		s.observe(packet.Segment{
			Link: packet.Link{Incoming: true, Index: 2}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(),
			Dst: server.Addr().As16(), DstPort: port, Flags: packet.FlagACK, Seq: s.isn + 1, Ack: serverISN + 1, Payload: 50,
		})
	}
	s.tracker.Drops(port, 0, time.Minute)
	s.tracker.Cookies(0, time.Minute)
	data()
	s.wait(8)
	data()
	for s.tracker.Report()[0].Clients[outcome.Stalled] == 0 {
		s.wait(.5)
		s.tracker.Advance(s.at)
		require.Less(t, s.at, time.Minute)
	}
	s.has(kernel.Connection)
	data()
	s.tracker.Ask(s.at)
	s.has(kernel.OnlyListener)
	s.wait(1)
	s.in(packet.FlagFIN|packet.FlagACK, s.isn+51, serverISN+1)
	e := s.ends()
	require.EqualValues(t, 1, e.Clients[outcome.Stalled])
	require.EqualValues(t, 1, e.LetInLate)
	require.Zero(t, e.LetIn)
	require.Zero(t, e.Answers)
}

// A client that is far away is not delayed by that, be it that only its SYN was read.
func TestFarAway(t *testing.T) {
	quiet := time.Duration(0)
	s := newScript(t, Options{Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found {
		return kernel.Found{Socket: kernel.Connection, HasInfo: true, Received: 50, Quiet: quiet}
	}})
	s.syn()
	s.synAck()
	const away = 300 * time.Millisecond
	s.wait(.25)
	for range 20 {
		s.wait(.25)
		quiet = s.at - time.Second - away
		s.tracker.Advance(s.at)
	}
	require.Equal(t, just(outcome.Connected), s.tracker.Report()[0].Clients)
}

// Nor is one whose answer to its SYN-ACK comes when the clients' segments have begun to be read, as others are
// dropped: it is a bare ACK, of which there is no other.
func TestFarAwayBesideDrops(t *testing.T) {
	var s *script
	var made time.Duration
	s = newScript(t, Options{Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found {
		if made == 0 {
			return kernel.Found{Socket: kernel.HalfOpenSocket}
		}
		return kernel.Found{Socket: kernel.Connection, HasInfo: true, Quiet: s.at - made}
	}})
	s.syn()
	s.synAck()
	s.wait(.05)
	s.tracker.Widen(true)
	s.tracker.Drops(port, 0, time.Minute)
	s.wait(.25)
	s.acked()
	made = s.at
	s.tracker.Ask(s.at)
	for range 20 {
		s.wait(.25)
		s.tracker.Advance(s.at)
	}
	require.Equal(t, just(outcome.Connected), s.tracker.Report()[0].Clients)
}

// Nor is one whose answer was not read at all, if the kernel says that a bare ACK made its socket; but not where the
// SYN-ACK was repeated, or may have been by then: that is answered by another.
func TestFarAwayUnread(t *testing.T) {
	for _, tt := range []struct {
		name     string
		drops    bool
		bare     bool
		took     time.Duration
		repeated bool
		want     outcome.Outcome
	}{
		{"by a bare ACK", true, true, 300 * time.Millisecond, false, outcome.Connected},
		{"by data", true, false, 300 * time.Millisecond, false, outcome.Delayed},
		{"a repeated SYN-ACK is not read yet", true, true, 1050 * time.Millisecond, false, outcome.Delayed},
		{"a repeated SYN-ACK", true, true, 950 * time.Millisecond, true, outcome.Delayed},
		{"nothing is dropped, and a repeated SYN-ACK is not read yet (TCP_DEFER_ACCEPT)", false, true, 1004 * time.Millisecond, false, outcome.Delayed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s *script
			var made time.Duration
			s = newScript(t, Options{Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found {
				if s.at < made {
					return kernel.Found{Socket: kernel.HalfOpenSocket}
				}
				return kernel.Found{Socket: kernel.Connection, HasInfo: true, Received: 50, Quiet: s.at - made, ByBareACK: tt.bare}
			}})
			if tt.drops {
				s.tracker.Drops(port, 0, time.Minute)
			}
			s.syn()
			s.synAck()
			made = s.at + tt.took
			if tt.repeated {
				s.wait(.9)
				s.synAck()
			}
			for range 20 {
				s.wait(.25)
				s.tracker.Advance(s.at)
			}
			require.Equal(t, just(tt.want), s.tracker.Report()[0].Clients)
		})
	}
}

// Nor is the handshake's time in the delay of one that was let in by data, where others of its address have shown it; who is
// Delayed by what is known of itself stays that.
func TestFarAwayBesideOthers(t *testing.T) {
	const roundTrip = 140 * time.Millisecond
	for _, tt := range []struct {
		took, delay time.Duration
		want        outcome.Outcome
	}{
		{roundTrip, 0, outcome.Connected},
		{190 * time.Millisecond, 50 * time.Millisecond, outcome.Connected},
		{290 * time.Millisecond, 200 * time.Millisecond, outcome.Delayed}, // 150 at least, and the kernel's own time is not as exact
		{640 * time.Millisecond, 500 * time.Millisecond, outcome.Delayed},
	} {
		t.Run(fmt.Sprint(tt.took), func(t *testing.T) {
			var s *script
			var made time.Duration
			var judged []outcome.Judged
			s = newScript(t, Options{Judged: func(j outcome.Judged) { judged = append(judged, j) }, Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found {
				if s.at < made {
					return kernel.Found{Socket: kernel.HalfOpenSocket}
				}
				return kernel.Found{Socket: kernel.Connection, HasInfo: true, Received: 50, Quiet: s.at - made}
			}})
			s.tracker.Widen(true)
			s.wait(.1)
			other := s.client("10.0.0.7:40001", clientISN)
			other.syn()
			other.synAck()
			other.wait(roundTrip.Seconds())
			other.acked()
			s.at = other.at
			s.tracker.Widen(false)
			s.wait(.1)
			s.tracker.Drops(port, 0, time.Minute)
			s.syn()
			s.synAck()
			made = s.at + tt.took
			for range 20 {
				s.wait(.25)
				s.tracker.Advance(s.at)
			}
			i := slices.IndexFunc(judged, func(j outcome.Judged) bool { return j.Client == s.from })
			require.GreaterOrEqual(t, i, 0, "it is judged")
			require.Equal(t, tt.want, judged[i].Outcome)
			require.InDelta(t, tt.delay, judged[i].Delay, float64(time.Millisecond))
		})
	}
}

// Over random traces of clients who are far away, by a network that loses nothing: a delay is what the simulated
// kernel's is, less the handshake's own time, be it that the client's answer was not read. Only who was let in by what
// it had repeated may have that in its delay, where nothing is known of others of its address. Nobody who waited is
// Connected.
func TestDelaysOfThoseFarAway(t *testing.T) {
	const within = 20 * time.Millisecond
	seed := seedOf(t)
	compared, longer := 0, 0
	for i := range proof.Size(2000, 60) {
		m := newSimulated(rand.New(rand.NewPCG(seed, uint64(i))))
		m.loss, m.lag, m.oneWay = 0, 0, m.between(50*time.Millisecond, 450*time.Millisecond)
		judged := make(map[uint16]outcome.Judged)
		m.tracker.judged = func(j outcome.Judged) { judged[j.Client.Port()] = j }
		m.run(func() {})
		for _, c := range m.clients {
			j := judged[c.port]
			if !j.LetIn || !c.hasMade {
				continue
			}
			compared++
			made := c.made - c.began - 3*m.oneWay
			say := fmt.Sprintf("seed %d, %d, %v each way: made %v later, by the tap %v: %+v", seed, i, m.oneWay, made, j.Delay, j)
			if more := j.Delay - made; more.Abs() > within {
				longer++
				require.True(t, c.socket.byData && more > 0 && more < 2*m.oneWay+within, say)
			}
			if made >= lateAfter+within {
				require.Equal(t, outcome.Delayed, j.Outcome, say)
			}
		}
	}
	t.Logf("of %d delays %d have the round trip in them", compared, longer)
	require.LessOrEqual(t, longer, max(3, compared/1000))
}

// Who is let in by a bare ACK repeats what it had sent before; its FIN, if it had left by then, waits for that. The kernel
// says that it was taken before that is read, let alone the FIN.
func TestLetInByABareACK(t *testing.T) {
	const (
		began, roundTrip, lag = time.Second, 70 * time.Millisecond, 80 * time.Millisecond
		letIn                 = began + 4*time.Second
	)
	data := func(s *script) {
		s.observe(packet.Segment{
			Link: packet.Link{Incoming: true, Index: 2}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(),
			Dst: server.Addr().As16(), DstPort: port, Flags: packet.FlagACK, Seq: s.isn + 1, Ack: serverISN + 1, Payload: 50,
		})
	}
	fin := func(s *script) { s.in(packet.FlagFIN|packet.FlagACK, s.isn+51, serverISN+1) }
	type came struct {
		at   time.Duration
		what func(*script)
	}
	play := func(taken time.Duration, repeats ...came) outcome.Endpoint {
		now, until := time.Duration(0), 3*time.Minute
		judged := func(outcome.Judged) { until = min(until, now+2*halfPatience) } // a FIN alone does not say that it has left
		s := newScript(t, Options{Clock: func() time.Duration { return now }, Judged: judged, Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found {
			switch {
			case now < letIn:
				return kernel.Found{Socket: kernel.HalfOpenSocket}
			case now < taken:
				return kernel.Found{Socket: kernel.Connection, HasInfo: true, Quiet: now - letIn}
			}
			return kernel.Found{Socket: kernel.Connection, HasInfo: true, Received: 50, Quiet: now - letIn}
		}})
		s.late = true
		s.tracker.Widen(true)
		s.tracker.Drops(port, 0, time.Minute)
		list := append([]came{
			{began, (*script).syn},
			{began, (*script).synAck},
			{began + roundTrip, (*script).acked},
			{began + roundTrip, data},
			{letIn - roundTrip, (*script).synAck},
			{letIn, (*script).acked},
		}, repeats...)
		for ; now < until; now += 10 * time.Millisecond {
			for ; len(list) > 0 && list[0].at <= now-lag; list = list[1:] {
				s.at = list[0].at
				list[0].what(s)
			}
			s.tracker.Ask(now)
			s.tracker.Advance(max(now-Lag, 0))
		}
		return s.tracker.Report()[0]
	}
	for phase := time.Duration(0); phase < 2*firstAsk; phase += 10 * time.Millisecond {
		taken := letIn + time.Second + phase
		left := play(taken, came{taken, data}, came{taken + roundTrip, fin})
		require.Equal(t, just(outcome.Stalled), left.Clients, "%v", phase)
		require.EqualValues(t, 1, left.LetInLate)
		require.Equal(t, just(outcome.Delayed), play(taken, came{taken, data}).Clients, "it stays: %v", phase)
	}
	silent := play(time.Hour) // its kernel has given up repeating it (tcp_orphan_retries)
	require.Equal(t, just(outcome.Stalled), silent.Clients)
	require.EqualValues(t, 1, silent.LetInLate)
}

// Segments are read later than they come: when the kernel is asked a client's connection may have ended by some that
// have yet to be read. That there is no socket any more does not mean that there was none by then.
func TestEndsBeforeItIsRead(t *testing.T) {
	s := newScript(t, Options{})
	s.tracker.Widen(true)
	s.tracker.Drops(port, 0, time.Minute)
	s.syn()
	s.synAck()
	s.acked()
	s.wait(.004)
	s.in(packet.FlagFIN|packet.FlagACK, s.isn+1, serverISN+1)
	s.has(kernel.OnlyListener)
	s.tracker.Ask(s.at + 16*time.Millisecond)
	s.wait(.007)
	s.tracker.Observe(s.at, &packet.Segment{
		Link: packet.Link{Outgoing: true, Index: 2}, Dst: s.from.Addr().As16(), DstPort: s.from.Port(),
		Src: server.Addr().As16(), SrcPort: port, Flags: packet.FlagFIN | packet.FlagACK, Seq: serverISN + 1, Ack: s.isn + 2,
	})
	e := s.ends()
	require.Equal(t, just(outcome.Connected), e.Clients)
	require.EqualValues(t, 1, e.LetIn)
	require.Zero(t, e.LetInLate)
}

// Nor is it forgotten that there was none before, however often the kernel is asked meanwhile: who was turned away for
// long, and left, was not let in when it came.
func TestEndsBeforeItIsReadAndLeftBefore(t *testing.T) {
	for _, asked := range []int{1, 2, 5} {
		s := newScript(t, Options{})
		s.late = true
		s.tracker.Widen(true)
		s.tracker.Drops(port, 0, 25*time.Second)
		s.tracker.Cookies(0, time.Minute)
		s.has(kernel.OnlyListener)
		data := func() {
			s.observe(packet.Segment{
				Link: packet.Link{Incoming: true, Index: 2}, Src: s.from.Addr().As16(), SrcPort: s.from.Port(),
				Dst: server.Addr().As16(), DstPort: port, Flags: packet.FlagACK, Seq: s.isn + 1, Ack: serverISN + 1, Payload: 50,
			})
		}
		s.syn()
		s.synAck()
		s.wait(.01)
		s.acked()
		for range 3 {
			data()
			s.tracker.Ask(s.at + 80*time.Millisecond)
			s.wait(4)
		}
		s.wait(14)
		data() // its socket, which has ended when the kernel is asked
		for n := range asked {
			s.tracker.askSoon(0)
			s.tracker.Ask(s.at + 80*time.Millisecond + time.Duration(n)*10*time.Millisecond)
		}
		s.wait(.01)
		s.in(packet.FlagFIN|packet.FlagACK, s.isn+51, serverISN+1)
		s.wait(.04)
		s.observe(packet.Segment{
			Link: packet.Link{Outgoing: true, Index: 2}, Dst: s.from.Addr().As16(), DstPort: s.from.Port(),
			Src: server.Addr().As16(), SrcPort: port, Flags: packet.FlagFIN | packet.FlagACK, Seq: serverISN + 101, Ack: s.isn + 52,
		})
		s.wait(.01)
		s.in(packet.FlagRST, s.isn+52, 0)
		e := s.ends()
		require.Equal(t, just(outcome.Stalled), e.Clients, "asked %d times", asked)
		require.EqualValues(t, 1, e.LetInLate)
		require.Zero(t, e.Answers)
	}
}

// Who is forgotten while the kernel has yet to be asked about it is not asked about.
func TestForgottenWhileAsking(t *testing.T) {
	s := newScript(t, Options{})
	s.has(kernel.Connection)
	s.tracker.Widen(true)
	var all []*script
	for i := range 3 {
		c := s.client(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.7"), uint16(41_000+i)).String(), 7)
		c.syn()
		c.synAck()
		all = append(all, c)
	}
	for _, c := range all { // read at once
		s.tracker.Observe(s.at, &packet.Segment{
			Link: packet.Link{Incoming: true, Index: 2}, Src: c.from.Addr().As16(), SrcPort: c.from.Port(),
			Dst: server.Addr().As16(), DstPort: port, Flags: packet.FlagACK, Seq: c.isn + 1, Ack: serverISN + 1,
		})
	}
	s.tracker.clock = func() time.Duration { return s.at + time.Minute } // what was read is old: one is asked about
	s.tracker.Ask(s.at)
	require.Len(t, s.tracker.asking, 2)
	s.tracker.SetPorts(nil)
	s.tracker.Ask(s.at)
	s.tracker.Ask(s.at)
	for range 40 {
		s.wait(.5)
		s.tracker.Advance(s.at)
	}
	require.Zero(t, s.tracker.table.open)
}

// Nobody is lost at a server that serves all of its clients, however late the tap, the kernel's answers and the clients
// are on a busy machine.
func TestHealthyOnASlowMachine(t *testing.T) {
	seed := seedOf(t)
	for i := range proof.Size(2000, 60) {
		m := newSimulated(rand.New(rand.NewPCG(seed, uint64(i))))
		m.slow, m.loss, m.abort = true, 0, false
		m.backlog, m.slots, m.threads = 2*len(m.clients), 2*len(m.clients), len(m.clients)
		for _, c := range m.clients {
			c.connect, c.read = time.Minute, time.Minute
			if c.check {
				c.read = m.between(0, time.Duration(m.rand.IntN(1000))*time.Millisecond)
			}
		}
		m.run(func() {})
		checks := uint64(0)
		for _, c := range m.clients {
			if c.check {
				checks++
			}
		}
		e := m.tracker.Report()[0]
		say := fmt.Sprintf("seed %d, %d: %d clients, %d checks, cookies %d, %v a request, %v each way: %v, %+v", seed, i, len(m.clients), checks, m.cookies, m.service, m.oneWay, e.Clients, e.Answers)
		require.Zero(t, m.dropped, say)
		require.EqualValues(t, len(m.clients), e.LetIn, say)
		require.EqualValues(t, len(m.clients), e.Clients[outcome.Connected]+e.Clients[outcome.Delayed], say)
		require.EqualValues(t, checks, e.Answers.Checks, say)
		require.EqualValues(t, uint64(len(m.clients))-checks, e.Answers.Answered, say)
	}
}
