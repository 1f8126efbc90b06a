package hsperf

import (
	"testing"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// TestMain doubles as the processes that the tests read.
func TestMain(m *testing.M) { proctest.Main(m, nil) }
