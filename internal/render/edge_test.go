package render

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The shortest span has no positive counterpart: its text is made all the same.
func TestTheShortestSpan(t *testing.T) {
	require.Equal(t, "-"+howLong(math.MaxInt64), howLong(math.MinInt64))
	require.Equal(t, "-"+howLong(time.Second), howLong(-time.Second))
	require.Equal(t, "-"+howLong(math.MaxInt64), howLong(-math.MaxInt64))
}
