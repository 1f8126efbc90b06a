package nettest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Within waits for something that is bound to come.
func Within(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(t, "not within "+limit.String(), what)
		}
	}
}
