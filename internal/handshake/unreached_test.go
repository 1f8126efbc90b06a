package handshake

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// A client that repeats a SYN which was answered has no SYN-ACK: it still tries, and has given up when it stops. One
// that is silent after its SYN-ACK is half-open, and one that answers the SYN-ACK at last was let in late.
func TestUnreached(t *testing.T) {
	for _, tt := range []struct {
		name      string
		play      func(s *script)
		open      int // that repeat an answered SYN, before the end
		want      outcome.Outcome
		unreached uint64
	}{
		{"each SYN is answered", func(s *script) { s.tries(0, 1, 3, 7) }, 1, outcome.GaveUp, 1},
		{"it repeats its SYN once, and leaves", func(s *script) { s.tries(0, 1) }, 1, outcome.GaveUp, 1},
		{"the SYN-ACK is repeated before its SYN comes again", func(s *script) {
			s.tries(0)
			s.wait(1)
			s.synAck()
			s.wait(.01)
			s.tries(0)
		}, 1, outcome.GaveUp, 1},
		{"its first SYNs were dropped", func(s *script) { s.syns(0, 1); s.wait(2); s.tries(0, 4) }, 1, outcome.GaveUp, 1},
		{"one SYN", func(s *script) { s.tries(0) }, 0, outcome.HalfOpen, 0},
		{"its SYN comes twice at once, by two ways", func(s *script) { s.tries(0, .01) }, 0, outcome.HalfOpen, 0},
		{"its first SYN was dropped, and the next answered", func(s *script) { s.syn(); s.wait(1); s.tries(0) }, 0, outcome.GaveUp, 0},
		{"far away: it answers the SYN-ACK when it has repeated its SYN", func(s *script) {
			s.tries(0, 1)
			s.wait(.2)
			s.acked()
			s.has(kernel.Connection)
		}, 0, outcome.Delayed, 0},
		{"its host knows nothing of it any more when the SYN-ACK comes", func(s *script) {
			s.tries(0, 1)
			s.in(4, s.isn+1, 0)
		}, 0, outcome.GaveUp, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript(t, Options{})
			s.tracker.Widen(true)
			s.has(kernel.HalfOpenSocket)
			tt.play(s)
			s.tracker.Advance(s.at)
			e := s.tracker.Report()[0]
			require.Equal(t, tt.open, e.Unreached)
			require.Equal(t, 1, e.Open())
			s.wait(3)
			for range 63 * 8 { // as long as the kernel repeats SYN-ACKs
				s.at += tick
				s.tracker.Advance(s.at)
			}
			if *s.met == kernel.HalfOpenSocket {
				s.has(kernel.OnlyListener)
			}
			e = s.ends()
			require.Equal(t, just(tt.want), e.Clients)
			require.Equal(t, tt.unreached, e.GaveUpUnreached)
		})
	}
}

// It is known soon that such a client has left, though the kernel repeats its SYN-ACK for a minute.
func TestUnreachedLeavesSoon(t *testing.T) {
	s := newScript(t, Options{})
	s.tracker.Widen(true)
	s.has(kernel.HalfOpenSocket)
	s.tries(0, 1)
	s.wait(8)
	s.tracker.Advance(s.at)
	e := s.tracker.Report()[0]
	require.Equal(t, just(outcome.GaveUp), e.Clients)
	require.EqualValues(t, 1, e.GaveUpUnreached)
	require.Zero(t, e.Open())
}

// tries are SYNs, each of them answered.
func (s *script) tries(times ...float64) { s.play(func() { s.syn(); s.synAck() }, times) }

// Over random traces of the simulated kernel in which nothing that the server sends reaches some of the clients: those
// are known, and no others, whatever else happens to these.
func TestUnreachedBesideOthers(t *testing.T) {
	seed := seedOf(t)
	deaf, undecided := 0, uint64(0)
	for i := range proof.Size(2000, 60) {
		m := newSimulated(rand.New(rand.NewPCG(seed, uint64(i))))
		m.loss = 0
		share := m.rand.Float64()
		for _, c := range m.clients {
			c.deaf = m.rand.Float64() < share
		}
		judged := make(map[uint16]outcome.Judged)
		m.tracker.judged = func(j outcome.Judged) {
			if _, before := judged[j.Client.Port()]; !before {
				judged[j.Client.Port()] = j
			}
		}
		m.run(func() {})
		e, want := m.tracker.Report()[0], uint64(0)
		for _, c := range m.clients {
			j := judged[c.port]
			say := fmt.Sprintf("seed %d, %d, cookies %d, lag %v: first SYN-ACK %v, last SYN %v: %+v", seed, i, m.cookies, m.lag, c.firstReply, c.lastSYN, j)
			if !c.deaf || c.firstReply == 0 || c.lastSYN-c.firstReply < time.Second/2 {
				continue
			}
			want++
			if j.Outcome == outcome.Undecided { // its answer to a cookie may not have been read
				undecided++
				want--
				continue
			}
			require.Equal(t, outcome.GaveUp, j.Outcome, say)
		}
		deaf += int(want)
		require.Equal(t, want, e.GaveUpUnreached, "seed %d, %d", seed, i)
	}
	t.Logf("%d unreached, %d more undecided", deaf, undecided)
	require.Greater(t, deaf, 100)
	require.LessOrEqual(t, undecided, uint64(deaf/50))
}
