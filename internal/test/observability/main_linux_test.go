package observability

import (
	"flag"
	"os"
	"testing"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// TestMain runs the tests in a network namespace of their own: its counters are theirs
// alone, and all ports are free.
func TestMain(m *testing.M) {
	rig.Prepared(m, prepare)
}

// prepare lets all stories run at the same time: they wait far more than they work.
func prepare() error {
	return flag.Set("test.parallel", "8")
}

// artifacts skips the test where it cannot run.
func artifacts(t *testing.T) rig.Artifacts {
	t.Helper()
	proof.Servers(t)
	nettest.Root(t)
	for _, names := range [][]string{{"prometheus"}, {"alertmanager", "prometheus-alertmanager"}} {
		if _, err := installed(names...); err != nil && os.Getenv("CI") != "true" {
			t.Skipf("%v (Debian: prometheus, prometheus-alertmanager)", err)
		}
	}
	return rig.KitOf(t).Artifacts()
}
