package phrase_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 8192: "8,192", 1234567: "1,234,567", -1: "-1", -1000: "-1,000"} {
		require.Equal(t, want, phrase.Number(n))
	}
	require.Equal(t, "18,446,744,073,709,551,615", phrase.Number(^uint64(0)))
}

func TestSprintf(t *testing.T) {
	require.Equal(t, "8,192 of 10,000 on port 18080 (12 %)", phrase.Sprintf("%d of %d on port %v (%s)", 8192, uint64(10000), 18080, "12 %"))
	require.Equal(t, "1,707 again: 1,707", phrase.Sprintf("%d again: %[1]d", 1707))
}

func TestCount(t *testing.T) {
	require.Equal(t, "1 packet", phrase.Count(1, "packet"))
	require.Equal(t, "1,707 packets", phrase.Count(1707, "packet"))
	require.Equal(t, "2 processes", phrase.Count(2, "process"))
}

// Text and bars say the same, and 100 % of nothing but what is full.
func TestPercentIsRoundedDown(t *testing.T) {
	for ratio, want := range map[float64]string{.25: "25 %", .29: "29 %", .57: "57 %", 92. / 105: "87 %", .999: "99 %", 1: "100 %"} {
		require.Equal(t, want, phrase.Percent(ratio))
	}
}
