package accounts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// random is a shape of the matrix: bursts of 30 to most clients, of all patiences and
// settings.
func random(r *rand.Rand, most int) shape {
	one := func(of ...int) int { return of[r.IntN(len(of))] }
	seconds := func(from, to float64) time.Duration {
		return time.Duration((from + r.Float64()*(to-from)) * float64(time.Second)).Round(10 * time.Millisecond)
	}
	s := shape{
		clients: 30 + r.IntN(most-30), cookies: one(0, 1, 1, 2), abort: r.IntN(4) == 0, veth: r.IntN(2) == 0,
		patience: patience{connect: seconds(.5, 30), read: seconds(1, 30), hold: seconds(.1, 15)},
		server: demo.ServerOptions{
			MaxThreads: 1 + r.IntN(8), MaxConnections: 1 + r.IntN(40), AcceptCount: 1 + r.IntN(20),
			ServiceTime: time.Duration(one(5, 20, 100, 500, 2000)) * time.Millisecond,
		},
	}
	if r.IntN(2) == 0 {
		s.spread = seconds(.1, 10)
	}
	if r.IntN(2) == 0 {
		s.checks = s.clients / (2 + r.IntN(20))
	}
	if r.IntN(3) == 0 {
		s.server.KeepAlive = seconds(1, 20)
		s.patience.keep = seconds(.5, 10)
	}
	return s
}

// TestMatrix is a part of the matrix from a fixed seed: small bursts of little patience, whose
// kernels forget them soon.
func TestMatrix(t *testing.T) {
	for i := range 12 {
		s := random(rand.New(rand.NewPCG(41, uint64(i))), 120)
		s.patience.connect, s.patience.read, s.patience.hold = s.patience.connect/6, s.patience.read/6+time.Second/2, s.patience.hold/6
		s.spread, s.patience.keep, s.orphans = s.spread/6, s.patience.keep/6, 1
		if nettest.InGuest() && s.veth { // whose kernel has netem
			s.delay, s.loss = time.Duration(10+10*i)*time.Millisecond, float32(i%3)
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			run(t, s).checkWithin(t, 2)
		})
	}
}

// seedOf is the run's: TCPDIAG_ACCOUNTS_SEED, or a fresh one.
func seedOf(t *testing.T) uint64 {
	if v := os.Getenv("TCPDIAG_ACCOUNTS_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		require.NoError(t, err)
		return seed
	}
	return uint64(time.Now().UnixNano())
}

// TestFullMatrix is a hundred shapes as a proof, else four, from a fresh seed that is printed.
func TestFullMatrix(t *testing.T) {
	proof.Skip(t)
	seed := seedOf(t)
	t.Logf("TCPDIAG_ACCOUNTS_SEED=%d", seed)
	rows := &table{seed: seed, rows: make(map[int]string)}
	t.Cleanup(func() { rows.write(t) })
	for i := range proof.Size(100, 4) {
		s := random(rand.New(rand.NewPCG(seed, uint64(i))), 2000)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			r := run(t, s)
			defer func() { rows.add(t, i, r) }()
			r.check(t)
		})
	}
}
