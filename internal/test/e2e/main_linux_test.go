package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// TestMain runs the tests in namespaces of their own: the counters are theirs alone,
// all ports are free, and what they mount goes with them.
func TestMain(m *testing.M) { rig.Main(m) }

// artifacts skips the test where it cannot run.
func artifacts(t *testing.T) rig.Artifacts {
	t.Helper()
	proof.Servers(t)
	nettest.Root(t)
	return rig.KitOf(t).Artifacts()
}

// within waits for something that is bound to come.
func within(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			require.FailNow(t, "not within "+limit.String(), what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
