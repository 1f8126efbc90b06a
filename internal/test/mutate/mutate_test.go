package mutate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
)

// The same mutations each time, of every type that targets take.
func TestSameMutations(t *testing.T) {
	corpus := [][]any{{[]byte("server.port=1"), "text", true, uint8(1), uint16(2), int(3), uint64(4)}, {[]byte("a: b"), "", false, uint8(0), uint16(0), 0, uint64(0)}}
	a, b := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
	different := map[string]struct{}{}
	for range 2000 {
		one := mutated(a, corpus)
		require.Equal(t, one, mutated(b, corpus))
		require.LessOrEqual(t, len(one[0].([]byte)), maxInput)
		different[string(one[0].([]byte))] = struct{}{}
	}
	require.Greater(t, len(different), 300)
	require.Equal(t, "server.port=1", string(corpus[0][0].([]byte)), "the corpus is not changed")
}

// An input that takes more than it may fails.
func TestBounded(t *testing.T) {
	call := func(body func(*testing.T)) bool {
		inner := new(testing.T)
		bounded(body, 20*time.Millisecond, 10<<20).(func(*testing.T))(inner)
		return inner.Failed()
	}
	require.False(t, call(func(*testing.T) {}))
	require.True(t, call(func(*testing.T) {
		for range 11 {
			sink(make([]byte, 1<<20))
		}
	}))
	require.True(t, call(func(*testing.T) {
		for begin := cputime.Process(); cputime.Process()-begin < 21*time.Millisecond; {
		}
	}))
}

//go:noinline
func sink(b []byte) []byte { return b }
