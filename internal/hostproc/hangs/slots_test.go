package hangs

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newSlots has six usual slots and ten in all, two of one owner.
func newSlots() (h *Slots, now *time.Time) {
	now = new(time.Time)
	*now = time.Unix(0, 0)
	return NewSlots(2, 6, 10, func() time.Time { return *now }), now
}

func (h *Slots) hang(t *testing.T, owner string) {
	t.Helper()
	require.NoError(t, h.Begin(owner), owner)
	h.Hung(owner)
}

// Owners for which it hangs take the usual slots, and everybody else has some beyond.
func TestSuspectsShareTheUsualSlots(t *testing.T) {
	h, now := newSlots()
	h.hang(t, "a")
	h.hang(t, "a")
	require.ErrorIs(t, h.Begin("a"), ErrBefore)
	for _, owner := range []string{"b", "c", "d", "e"} {
		h.hang(t, owner)
	}
	require.ErrorIs(t, h.Begin("b"), ErrBefore, "no second one beyond the usual slots")
	for range 100 {
		require.NoError(t, h.Begin("honest"))
		h.End("honest")
	}

	// Who lets it go, and comes again, has the usual slots only.
	h.End("b")
	h.hang(t, "f")
	require.ErrorIs(t, h.Begin("b"), ErrOthers)
	require.NoError(t, h.Begin("honest"))
	h.End("honest")
	h.End("c")
	require.NoError(t, h.Begin("b"))
	h.End("b")
	*now = now.Add(suspectFor)
	h.hang(t, "g")
	require.NoError(t, h.Begin("b"), "and not for ever")
}

// Everything is bounded, whoever comes.
func TestSlotsByChurn(t *testing.T) {
	h, _ := newSlots()
	for n := range 10 {
		h.hang(t, fmt.Sprint(n))
	}
	require.ErrorIs(t, h.Begin("honest"), ErrOthers)
	h.End("0")
	for n := range 10_000 {
		h.hang(t, fmt.Sprint("next ", n))
		require.ErrorIs(t, h.Begin("honest"), ErrOthers)
		require.LessOrEqual(t, len(h.owners), maxSuspects)
		h.End(fmt.Sprint("next ", n))
	}
	for n := 1; n < 10; n++ {
		h.End(fmt.Sprint(n))
	}
	require.Zero(t, h.Taken())
	require.NoError(t, h.Begin("honest"))
}
