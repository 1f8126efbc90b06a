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
