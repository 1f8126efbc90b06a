package e2e

import (
	"testing"

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
