package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistory(t *testing.T) {
	start := time.Unix(1000, 0)
	after := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	var h history
	_, rose := h.firstRise()
	require.False(t, rose)
	for i, v := range []uint64{7, 7, 9, 7, 12} { // at 0, 1, 2, 3, 4 s
		h.add(after(float64(i)), v)
	}
	require.Len(t, h.value, 4, "a value that stays is one entry")
	first, rose := h.firstRise()
	require.True(t, rose)
	require.Equal(t, after(2), first)
	for _, test := range []struct {
		at        float64
		published uint64
		want      time.Duration
	}{
		{1.5, 7, 0},
		{2.5, 7, 500 * time.Millisecond},
		{3.5, 7, 0}, // true again
		{3.5, 9, 500 * time.Millisecond},
		{4.5, 7, 500 * time.Millisecond},
		{4.5, 9, 1500 * time.Millisecond},
		{4.5, 12, 0},
		{2.5, 8, 2500 * time.Millisecond}, // never was
	} {
		require.Equal(t, test.want, h.staleness(after(test.at), test.published), "%+v", test)
	}
}
