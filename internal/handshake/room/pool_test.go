package room

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Where nothing is free, who has most is asked to come down, by who has less than an equal share.
func TestPool(t *testing.T) {
	p := NewPool(1000)
	greedy, other := p.Join(), p.Join()
	for greedy.Take(100) {
	}
	require.Zero(t, greedy.Surplus(), "nobody has asked")
	require.False(t, greedy.Take(1))
	require.Zero(t, greedy.Surplus(), "who has most does not ask himself")
	require.False(t, other.Take(100))
	require.Equal(t, 500, greedy.Surplus())
	require.Zero(t, greedy.Surplus(), "it was said")
	greedy.Give(500)
	for range 5 {
		require.True(t, other.Take(100))
	}
	require.False(t, other.Take(1))
	require.False(t, greedy.Take(1))
	require.Zero(t, greedy.Surplus()+other.Surplus(), "half each")
	third := p.Join()
	require.False(t, third.Take(100))
	require.NotZero(t, greedy.Surplus()+other.Surplus())
	other.Leave()
	require.True(t, third.Take(100))
}

// Of shares that have left nothing remains.
func TestPoolByChurn(t *testing.T) {
	p := NewPool(1000)
	for i := range 10_000 {
		s := p.Join()
		require.True(t, s.Take(i%1000))
		s.Leave()
	}
	require.Zero(t, p.taken)
	require.Empty(t, p.shares)
	require.Less(t, cap(p.shares), 10)
}

// The least is there whatever others need.
func TestSlots(t *testing.T) {
	p := NewPool(100)
	require.True(t, p.Join().Take(100))
	mine := Slots{Share: p.Join(), Step: 10, Least: 40}
	n := 0
	for ; mine.Has(n); n++ {
	}
	require.Equal(t, 40, n)
	mine.Keep(20)
	require.Equal(t, 100, p.taken)
	for n = 20; mine.Has(n); n++ {
	}
	require.Equal(t, 40, n)
	mine.Keep(0)
	require.Equal(t, 100, p.taken)
}
