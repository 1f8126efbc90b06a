package springboot

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1500": 1500 * time.Millisecond, "0": 0, "-1": -time.Millisecond, "+5s": 5 * time.Second,
		"20s": 20 * time.Second, "20S": 20 * time.Second, "2m": 2 * time.Minute, "1h": time.Hour, "1d": 24 * time.Hour,
		"7ms": 7 * time.Millisecond, "7us": 7 * time.Microsecond, "7ns": 7 * time.Nanosecond,
		"PT1M": time.Minute, "pt1.5s": 1500 * time.Millisecond, "-PT3S": -3 * time.Second, "PT-3S": -3 * time.Second,
		"P1DT2H3M4.000005S": 26*time.Hour + 3*time.Minute + 4*time.Second + 5*time.Microsecond,
		"PT-1.5S":           -1500 * time.Millisecond, "P2D": 48 * time.Hour, "PT0,5S": 500 * time.Millisecond,
	} {
		got, err := parseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "5 s", "5x", "s", "P", "PT", "P1DT", "1.5s", "5min", "99999999999999999999s", "--1", "PT1H2"} {
		_, err := parseDuration(text)
		require.ErrorIs(t, err, errNotDuration, text)
	}
}

func TestParseInt(t *testing.T) {
	for text, want := range map[string]int{
		"10": 10, "\t1 2": 12, "+40": 40, "-1": -1, "0x20": 32, "#40": 64, "-0X1f": -31, "010": 10, "2147483647": 1<<31 - 1,
	} {
		got, err := parseInt(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", " ", "10.0", "1_000", "3000000000", "-", "+-1", "0x", "ten", "+0x1"} {
		_, err := parseInt(text)
		require.ErrorIs(t, err, errNotInteger, text)
	}
}

func TestParseBool(t *testing.T) {
	for text, want := range map[string]bool{
		"true": true, "TRUE": true, "on": true, "yes": true, "1": true, "Yes\t": true,
		"false": false, "off": false, "No": false, "0": false,
	} {
		got, err := parseBool(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	_, err := parseBool("maybe")
	require.ErrorIs(t, err, errNotBoolean)
}

func FuzzConvert(f *testing.F) {
	m := mutate.Into(f)
	for _, s := range []string{"30s", "PT30S", "-P1DT1.5S", "0x10", "+3", "yes", "9223372036854775807d"} {
		m.Add(s)
	}
	m.Fuzz(func(t *testing.T, text string) {
		if n, err := parseInt(text); err == nil {
			require.GreaterOrEqual(t, n, -1<<31)
			require.LessOrEqual(t, n, 1<<31-1)
		}
		_, _ = parseBool(text)
		if d, err := parseDuration(text); err == nil && len(text) > 0 && text[0] == '-' {
			// A sign in front turns the whole round.
			if positive, err := parseDuration(text[1:]); err == nil {
				require.InDelta(t, float64(-positive), float64(d), float64(time.Microsecond))
			}
		}
	})
}
