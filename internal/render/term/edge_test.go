package term

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The shortest span has no positive counterpart: its text is made all the same.
func TestTheShortestSpan(t *testing.T) {
	require.Equal(t, "-"+HowLong(math.MaxInt64), HowLong(math.MinInt64))
	require.Equal(t, "-"+HowLong(time.Second), HowLong(-time.Second))
	require.Equal(t, "-"+HowLong(math.MaxInt64), HowLong(-math.MaxInt64))
}

// What belongs together is on one line: a number and its unit, a command and its option.
func TestLinesEndBetweenThings(t *testing.T) {
	s := New(40, false)
	s.Paragraph(0, Text("raise the container's ulimits, or ulimit -n of the shell that starts it in 10 s"))
	require.Contains(t, s.String(), "ulimit -n")
	require.Contains(t, s.String(), "10 s")
}
