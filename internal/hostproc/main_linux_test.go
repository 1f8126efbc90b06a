package hostproc_test

import (
	"testing"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// TestMain doubles as the processes that the tests read.
func TestMain(m *testing.M) {
	proctest.Main(m, map[string]func(arg string) error{
		"probe":   func(arg string) error { return childProbe("/proc", arg) },
		"hidepid": childHidePID,
	})
}
