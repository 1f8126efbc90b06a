package room

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of the port that has most the endpoint that has most gives up one, down to an equal share.
func TestGreediest(t *testing.T) {
	var h Holdings
	for i, number := range []uint16{1, 1, 2, 3} {
		h.Assign(uint16(i), number)
	}
	h.Add(0, 6)
	h.Add(1, 5)
	h.Add(2, 9)
	var gaveUp []uint16
	for i, ok := h.Greediest(3); ok; i, ok = h.Greediest(3) {
		gaveUp = append(gaveUp, i)
		h.Add(i, -1)
		h.Add(3, 1)
	}
	require.Equal(t, []uint16{0, 0, 1, 2, 0, 2}, gaveUp)
	require.Equal(t, []endpoint{{3, 0}, {4, 0}, {7, 1}, {6, 2}}, h.endpoints)
}

// Indices that are used again leave nothing behind.
func TestHoldingsByChurn(t *testing.T) {
	var h Holdings
	for n := range 100_000 {
		i := uint16(n % 10)
		h.Assign(i, uint16(n))
		h.Add(i, 3)
		h.Add(i, -3)
	}
	require.Len(t, h.endpoints, 10)
	require.LessOrEqual(t, len(h.ports), 11)
	require.Zero(t, h.all)
}
