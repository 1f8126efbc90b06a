package handshake

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/room"
)

// oneWayScript is a script whose outgoing packets are not read from its beginning on, and
// what the kernel has for every client.
// trusted is the client of trust.
var trusted = netip.MustParseAddrPort("10.0.0.9:50000")

func oneWayScript(t *testing.T, met *kernel.Socket) *script {
	s := newScript(t, Options{Socket: func(_, from netip.AddrPort, _ uint32) kernel.Found {
		if from == trusted && *met == kernel.HalfOpenSocket {
			return kernel.Found{Socket: kernel.NoSocket} // it has ended
		}
		return kernel.Found{Socket: *met}
	}})
	s.met = met
	s.tracker.StopOutgoing(s.at)
	s.wait(1)
	return s
}

// resume has outgoing packets read again, and the counters of the second before.
func (s *script) resume(moved kernel.Counters) {
	base, now := s.at-time.Second, s.at+time.Second/100
	s.tracker.ResumeOutgoing(s.at, kernel.Count{Counters: kernel.Counters{}, Began: base, Ended: base}, kernel.Count{Counters: moved, Began: now, Ended: now})
}

func (s *script) fin() { s.in(packet.FlagFIN|packet.FlagACK, s.isn+101, serverISN+501) }

// trust has a client come whose connection is found, and end.
func (s *script) trust(met *kernel.Socket) {
	before := *met
	*met = kernel.Connection
	other := s.client(trusted.String(), 7)
	other.syn()
	s.tracker.Advance(s.at)
	other.fin()
	*met = before
}

// Each script is one client whose answer was not read, besides the one that shows that
// the kernel knows them. What became of it follows from what it sends itself, from its
// socket, and from the counters.
func TestUnread(t *testing.T) {
	resumed := func(moved kernel.Counters) func(s *script) {
		return func(s *script) { s.syn(); s.wait(.1); s.resume(moved) }
	}
	for name, c := range map[string]struct {
		met       kernel.Socket
		play      func(s *script)
		want      outcome.Outcome
		untracked bool
		delay     float64
	}{
		"its FIN":                     {kernel.NoSocket, func(s *script) { s.syn(); s.fin() }, outcome.Connected, false, 0},
		"its RST within a connection": {kernel.NoSocket, func(s *script) { s.syn(); s.in(packet.FlagRST|packet.FlagACK, s.isn+101, serverISN+501) }, outcome.Connected, false, 0},
		"its RST to a FIN":            {kernel.NoSocket, func(s *script) { s.syn(); s.in(packet.FlagRST, s.isn+101, 0) }, outcome.Connected, false, 0},
		"its RST to the SYN-ACK":      {kernel.NoSocket, func(s *script) { s.syn(); s.in(packet.FlagRST, s.isn+1, 0) }, outcome.HalfOpen, false, 0},
		"a connection":                {kernel.Connection, func(s *script) { s.syn() }, outcome.Connected, false, 0},
		"a FIN of an earlier one":     {kernel.Connection, func(s *script) { s.in(packet.FlagFIN|packet.FlagACK, s.isn-9, 1); s.syn() }, outcome.Connected, false, 0},
		"let in with its second SYN":  {kernel.Connection, func(s *script) { s.syns(0, 1) }, outcome.Delayed, false, 1},
		"the SYN-ACK is seen as well": {kernel.NoSocket, func(s *script) { s.syn(); s.synAck() }, outcome.Connected, false, 0},
		"and repeated": {kernel.HalfOpenSocket, func(s *script) {
			resumed(kernel.Counters{Repeats: 1})(s)
			s.wait(-.1)
			s.synAcks(1)
			s.has(kernel.Connection)
		}, outcome.Delayed, false, 1},
		"half-open, it seems to stall": {kernel.HalfOpenSocket, func(s *script) {
			resumed(kernel.Counters{Drops: 1})(s)
			s.wait(-.1)
			s.synAcks(1, 3, 7, 15, 31)
			s.acked()
			s.has(kernel.OnlyListener)
		}, outcome.Stalled, false, 0},
		"half-open, long ago": {kernel.HalfOpenSocket, func(s *script) {
			s.syn()
			s.wait(1.1)
			s.resume(kernel.Counters{Repeats: 1})
			s.wait(-1.1)
			s.synAcks(3, 7, 15, 31)
			s.acked()
			s.has(kernel.OnlyListener)
		}, outcome.Stalled, false, 0},
		"dropped":                                {kernel.OnlyListener, resumed(kernel.Counters{Drops: 1}), outcome.GaveUp, false, 0},
		"dropped, beside a reset":                {kernel.OnlyListener, resumed(kernel.Counters{Drops: 1, Resets: 1}), outcome.GaveUp, false, 0},
		"dropped, then let in":                   {kernel.OnlyListener, func(s *script) { resumed(kernel.Counters{Drops: 1})(s); s.wait(.9); s.syn(); s.synAck() }, outcome.Delayed, false, 1},
		"dropped or aborted":                     {kernel.OnlyListener, resumed(kernel.Counters{Drops: 1, Resets: 1, Aborted: 1}), 0, true, 0},
		"dropped or reset":                       {kernel.OnlyListener, resumed(kernel.Counters{Drops: 1, Resets: 1, Killed: 1}), 0, true, 0},
		"dropped by netfilter":                   {kernel.OnlyListener, resumed(kernel.Counters{}), outcome.GaveUp, false, 0},
		"closed with bytes unread, behind a FIN": {kernel.OnlyListener, resumed(kernel.Counters{Resets: 1, Opened: 2}), outcome.Connected, false, 0},
		"that was another, and netfilter drops its SYNs": {kernel.OnlyListener, func(s *script) {
			resumed(kernel.Counters{Resets: 1, Opened: 2})(s)
			s.wait(-.1)
			s.syns(1, 3)
		}, outcome.GaveUp, false, 0},
		"dropped or sent a cookie":     {kernel.OnlyListener, resumed(kernel.Counters{Cookies: 1}), outcome.Undecided, false, 0},
		"refused":                      {kernel.NoSocket, resumed(kernel.Counters{Resets: 1}), outcome.Refused, false, 0},
		"refused, beside a killed one": {kernel.NoSocket, resumed(kernel.Counters{Resets: 2, Killed: 1, Opened: 1}), outcome.Refused, false, 0},
		"refused or killed":            {kernel.NoSocket, resumed(kernel.Counters{Resets: 2, Killed: 1, Opened: 2}), 0, true, 0},
		"refused or dropped":           {kernel.NoSocket, resumed(kernel.Counters{Resets: 1, Drops: 1}), 0, true, 0},
		"refused, and that is seen": {kernel.NoSocket, func(s *script) {
			s.syn()
			s.out(packet.FlagRST|packet.FlagACK, 0, s.isn+1)
			s.resume(kernel.Counters{Resets: 1})
		}, outcome.Refused, false, 0},
		"reset, and that is seen":  {kernel.Connection, func(s *script) { resumed(kernel.Counters{Resets: 1})(s); s.out(packet.FlagRST, serverISN+1, 0) }, 0, true, 0},
		"nobody can be asked":      {kernel.SocketUnknown, resumed(kernel.Counters{Drops: 1}), 0, true, 0},
		"with another of its port": {kernel.Connection, func(s *script) { s.syn(); s.isn += 1 << 20; s.syn(); s.fin(); s.wait(3) }, outcome.Connected, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			met := c.met
			s := oneWayScript(t, &met)
			s.trust(&met)
			c.play(s)
			got := s.ends()
			want := [outcome.NumOutcomes]uint64{outcome.Connected: 1}
			if !c.untracked || name == "with another of its port" {
				want[c.want]++
			}
			require.Equal(t, want, got.Clients)
			require.Equal(t, c.untracked, got.Untracked == 1, "%d", got.Untracked)
			require.InDelta(t, c.delay, got.Delays.Sum, .001)
		})
	}
}

// Where clients were let in and none was ever found, that there is none proves nothing: the
// kernel may have them by other addresses.
func TestUnreadWithoutTrust(t *testing.T) {
	for name, c := range map[string]struct {
		met    kernel.Socket
		moved  kernel.Counters
		before bool // a client was let in, unfound
		want   outcome.Outcome
		known  bool
	}{
		"dropped":                      {kernel.OnlyListener, kernel.Counters{Drops: 1}, false, outcome.GaveUp, true},
		"dropped, or found no more":    {kernel.OnlyListener, kernel.Counters{Drops: 1}, true, 0, false},
		"refused":                      {kernel.NoSocket, kernel.Counters{Resets: 1}, false, outcome.Refused, true},
		"refused, beside another port": {kernel.NoSocket, kernel.Counters{Resets: 1, Drops: 9, Killed: 3}, false, outcome.Refused, true},
		"refused, or found no more":    {kernel.NoSocket, kernel.Counters{Resets: 1}, true, 0, false},
		"nothing has happened":         {kernel.NoSocket, kernel.Counters{}, true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			met := kernel.NoSocket
			s := oneWayScript(t, &met)
			want := [outcome.NumOutcomes]uint64{}
			if c.before {
				other := s.client("10.0.0.9:50000", 7)
				other.syn()
				other.fin()
				s.wait(3)
				want[outcome.Connected]++
			}
			met = c.met
			s.syn()
			s.wait(.1)
			s.resume(c.moved)
			e := s.ends()
			if c.known {
				want[c.want]++
			}
			require.Equal(t, want, e.Clients)
			require.Equal(t, c.known, e.Untracked == 0)
			require.Equal(t, c.moved.Calm(), s.tracker.Unread().Distrust)
		})
	}
}

// A client that is not answered while the counters are calm is a reason to read outgoing
// packets again; until then nothing is said of it.
func TestDoubt(t *testing.T) {
	for name, play := range map[string]func(s *script){
		"no connection":  func(s *script) { s.syn(); s.wait(3); s.tracker.Advance(s.at); s.wait(.3) },
		"a repeated SYN": func(s *script) { s.syns(0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			met := kernel.OnlyListener
			s := oneWayScript(t, &met)
			s.trust(&met)
			s.tracker.Advance(s.at)
			require.False(t, s.tracker.Unread().Doubt)
			play(s)
			s.tracker.Advance(s.at)
			require.True(t, s.tracker.Unread().Doubt)
			s.resume(kernel.Counters{})
			require.False(t, s.tracker.Unread().Doubt)
			require.False(t, s.tracker.Settled())
			e := s.ends()
			require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1, outcome.GaveUp: 1}, e.Clients)
			require.True(t, s.tracker.Unread().Distrust)
			require.True(t, s.tracker.Settled())
			s.tracker.Unread().Distrust = false
			require.False(t, s.tracker.Unread().Distrust)
		})
	}
}

// Clients whose answer is not read are none that wait for one.
func TestUnreadAreNotWaiting(t *testing.T) {
	met := kernel.Connection
	s := oneWayScript(t, &met)
	s.syn()
	e := s.tracker.Report()[0]
	require.Equal(t, 0, e.Waiting)
	require.Equal(t, 1, e.Settling)
	s.fin()
	e = s.tracker.Report()[0]
	require.Equal(t, 1, e.Settling)
}

// Of those that a closing listener has left without a connection the first were let in
// and killed: as many as the kernel let in and nobody else has proved. The others were
// refused, for certain.
func TestRefusedAfterTheLastKilled(t *testing.T) {
	met := kernel.NoSocket
	s := oneWayScript(t, &met)
	s.trust(&met)
	const clients, killed = 10, 3
	for i := range clients {
		s.wait(.01)
		s.client(netip.AddrPortFrom(netip.MustParseAddr("10.0.1.1"), uint16(1000+i)).String(), uint32(i)).syn()
	}
	s.wait(.01)
	s.resume(kernel.Counters{Resets: clients, Killed: 40, Opened: 1 + killed})
	e := s.ends()
	require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 1, outcome.Refused: clients - killed}, e.Clients)
	require.EqualValues(t, killed, e.Untracked)
}

// A client that uses its port again at once was refused each time.
func TestUnreadPortsUsedAgain(t *testing.T) {
	met := kernel.NoSocket
	s := oneWayScript(t, &met)
	const times = 400 // the table's index grows meanwhile
	for range times {
		s.syn()
		s.isn += 1 << 20
		s.wait(.001)
	}
	s.resume(kernel.Counters{Resets: times})
	e := s.ends()
	require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Refused: times}, e.Clients)
	require.Zero(t, e.Untracked)
}

// Those that came when all was read again are no proof of whom the kernel let in before.
func TestRefusedBesideLaterClients(t *testing.T) {
	met := kernel.NoSocket
	s := oneWayScript(t, &met)
	s.trust(&met)
	s.wait(.1)
	s.client("10.0.1.1:1000", 99).syn()
	s.wait(.1)
	s.resume(kernel.Counters{Resets: 1, Killed: 1, Opened: 2})
	s.wait(.01)
	later := s.client("10.0.1.1:1001", 77)
	later.syn()
	later.synAck()
	later.fin()
	e := s.ends()
	require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 2}, e.Clients)
	require.EqualValues(t, 1, e.Untracked)
}

// A client that has sent its FIN is let in as soon as the counters show that its ACK was
// not dropped; until then a repeated SYN-ACK is waited for.
func TestProved(t *testing.T) {
	met := kernel.NoSocket
	s := oneWayScript(t, &met)
	s.syn()
	s.fin()
	s.wait(.1)
	s.tracker.Advance(s.at)
	require.Zero(t, s.tracker.Report()[0].Clients)
	s.tracker.Unread().CalmTo = s.at
	s.tracker.Advance(s.at)
	require.Equal(t, just(outcome.Connected), s.tracker.Report()[0].Clients)

	s = oneWayScript(t, &met)
	s.syn()
	s.fin()
	s.wait(.2)
	s.resume(kernel.Counters{Drops: 1})
	s.wait(-.2)
	s.synAcks(1, 3, 7, 15, 31)
	s.acked()
	require.Equal(t, just(outcome.Stalled), s.ends().Clients)
}

// A client that uses its port again while its earlier connection has yet to be judged is
// another, whatever happens then.
func TestProvedPortUsedAgain(t *testing.T) {
	met := kernel.Connection
	s := oneWayScript(t, &met)
	const times = 300
	for range times {
		s.syn()
		s.fin()
		s.isn += 1 << 20
		s.wait(.0001)
	}
	s.syn()
	require.Equal(t, times+1, s.tracker.Report()[0].Settling)
	s.resume(kernel.Counters{Drops: 1})
	require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: times + 1}, s.ends().Clients)
}

func TestProvedOnAPortThatIsNotFollowed(t *testing.T) {
	met := kernel.NoSocket
	s := oneWayScript(t, &met)
	s.syn()
	s.fin()
	s.tracker.SetPorts(nil)
	require.Zero(t, s.ends().Clients)
}

// A table that was large for a while finds its attempts by a small index again.
func TestIndexShrinks(t *testing.T) {
	var held room.Holdings
	for i := range uint16(3) {
		held.Assign(i, port)
	}
	table := newTable(1<<14, &held, nil)
	k := func(i int) *key { return &key{clientPort: uint16(i), endpoint: uint16(i % 3)} }
	const many = 10_000
	for i := range many {
		require.NotEqual(t, none, table.add(k(i), time.Second))
	}
	large := len(table.buckets)
	for i := range many {
		if i%1000 != 0 {
			table.remove(table.find(k(i)))
		}
	}
	require.Less(t, len(table.buckets), large/16)
	for i := range many {
		require.Equal(t, i%1000 == 0, table.find(k(i)) != none, "%d", i)
	}
}

// RSTs that refused clients account for are no sign of something that no counter shows.
func TestRefusedIsNoDistrust(t *testing.T) {
	met := kernel.NoSocket
	s := oneWayScript(t, &met)
	for i := range 3 {
		s.client("10.0.1.1:1000", uint32(i)).syn() // its port again
	}
	s.resume(kernel.Counters{Resets: 2})
	s.ends()
	require.False(t, s.tracker.Unread().Distrust)
}

// While RSTs are sent, clients are asked about as soon as their FIN would have been read.
// One without a socket is asked about twice: its FIN may have come just before.
func TestStrayResets(t *testing.T) {
	for name, c := range map[string]struct {
		met      kernel.Socket
		fin      bool // between the questions
		letIn    bool
		doubtful bool
	}{
		"a connection":           {kernel.Connection, false, true, false},
		"half-open":              {kernel.HalfOpenSocket, false, true, false},
		"it ends meanwhile":      {kernel.NoSocket, true, true, false},
		"it is answered by none": {kernel.NoSocket, false, false, true},
		"it was not let in":      {kernel.OnlyListener, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			met := c.met
			s := oneWayScript(t, &met)
			s.trust(&met)
			s.syn()
			s.wait(.1)
			by := s.at
			require.False(t, s.tracker.LetIn(by))
			s.wait(.3)
			later := s.client("10.0.1.1:1000", 99)
			later.syn() // does not matter
			s.tracker.Advance(s.at - time.Second/4)
			require.False(t, s.tracker.Unread().Doubt)
			if c.fin {
				s.fin()
			}
			s.wait(.6)
			s.tracker.Advance(s.at - time.Second/4)
			require.Equal(t, c.letIn, s.tracker.LetIn(by))
			require.Equal(t, c.doubtful, s.tracker.Unread().Doubt)
		})
	}
}

// One that had no socket when it was asked about is not taken for one that was reset.
func TestMissingThenAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		play func(s *script)
		want outcome.Outcome
	}{
		"its FIN":   {func(s *script) { s.fin() }, outcome.Connected},
		"a SYN-ACK": {func(s *script) { s.resume(kernel.Counters{Drops: 1}); s.wait(.1); s.syn(); s.synAck() }, outcome.Delayed},
		"a refusal": {func(s *script) {
			s.out(packet.FlagRST|packet.FlagACK, 0, s.isn+1)
			s.resume(kernel.Counters{Resets: 1})
		}, outcome.Refused},
		"its SYN-ACK": {func(s *script) { s.synAck() }, outcome.Connected},
	} {
		t.Run(name, func(t *testing.T) {
			met := kernel.OnlyListener
			s := oneWayScript(t, &met)
			s.trust(&met)
			s.syn()
			by := s.at
			require.False(t, s.tracker.LetIn(by))
			s.wait(.15)
			s.tracker.Advance(s.at)
			require.False(t, s.tracker.LetIn(by))
			c.play(s)
			want := [outcome.NumOutcomes]uint64{outcome.Connected: 1}
			want[c.want]++
			require.Equal(t, want, s.ends().Clients)
		})
	}
}

// While what is sent is not read, a FIN does not show whether its client was answered: the
// socket does, if the server has not closed it.
func TestUnreadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		after float64
		found kernel.Found
		want  outcome.Answers
	}{
		"nothing was sent":              {1, kernel.Found{Socket: kernel.Connection, HasInfo: true, Received: 100, Quiet: time.Second}, outcome.Answers{Unanswered: 1}},
		"something was":                 {1, kernel.Found{Socket: kernel.Connection, HasInfo: true, Received: 100, Sent: 9, Quiet: time.Second / 2}, outcome.Answers{Answered: 1}},
		"and after the FIN":             {1, kernel.Found{Socket: kernel.Connection, HasInfo: true, Received: 100, Sent: 9}, outcome.Answers{Unanswered: 1}},
		"the server has closed it":      {1, kernel.Found{Socket: kernel.NoSocket}, outcome.Answers{Unknown: 1}},
		"a quick one is not asked for":  {.1, kernel.Found{Socket: kernel.Connection, HasInfo: true, Received: 100}, outcome.Answers{Unknown: 1}},
		"a minute later, and no answer": {60, kernel.Found{Socket: kernel.Connection, HasInfo: true, Received: 100, Quiet: time.Minute}, outcome.Answers{Unanswered: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, Options{Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found { return c.found }})
			s.tracker.StopOutgoing(s.at)
			s.wait(1)
			s.syn()
			for end := s.at + time.Duration(c.after*float64(time.Second)); s.at < end; s.at += tick / 2 {
				s.tracker.Unread().CalmTo = s.at
				s.tracker.Advance(s.at)
			}
			s.tracker.Ask(s.at + time.Second/50)
			s.fin()
			s.wait(.1)
			e := s.ends()
			require.Equal(t, just(outcome.Connected), e.Clients)
			require.Equal(t, c.want, e.Answers)
			require.EqualValues(t, 1, e.LetIn)
		})
	}
}

// A client whose third SYN is answered, and whose ACK is not read: the first segment of it that is
// comes with the answer's first byte, half a second later. That time is not the network's.
func TestDelayWhereTheACKIsUnread(t *testing.T) {
	s := newScript(t, Options{})
	s.syns(0, 1, 2)
	s.synAck()
	s.wait(.5)
	s.served()
	s.fin()
	got := s.ends()
	require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Delayed: 1}, got.Clients)
	require.InDelta(t, 2, got.Delays.Sum, .001)
}

// A tap that a busy machine lets wait reads the SYN that a client repeats before the counters have shown that the one
// before was dropped: both were.
func TestUnreadAndRepeated(t *testing.T) {
	for name, play := range map[string]func(s *script){
		"it gives up": func(s *script) { s.syn() },
		"it is answered at last": func(s *script) {
			s.syn()
			s.wait(1)
			s.syn()
			s.synAck()
		},
	} {
		t.Run(name, func(t *testing.T) {
			met := kernel.OnlyListener
			s := oneWayScript(t, &met)
			s.syn()
			s.resume(kernel.Counters{Drops: 2})
			s.observeLate(func() { s.wait(1); play(s) })
			e := s.ends()
			require.EqualValues(t, 2, e.Unanswered)
			require.Zero(t, e.Untracked)
		})
	}
}

// observeLate plays segments that are read before the attempts are judged whose time is over.
func (s *script) observeLate(play func()) {
	s.late = true
	play()
	s.late = false
}
