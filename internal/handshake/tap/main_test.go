package tap

import (
	"flag"
	"os"
	"testing"
)

// Most tests wait for the kernel's timers, so that more of them than there are processors
// run beside one another.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
