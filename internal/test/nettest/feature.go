package nettest

import (
	"fmt"
	"os"
)

// InGuest is whether the test runs in a guest of `make prove PROOF=kernels`.
func InGuest() bool { return os.Getenv("TCPDIAG_GUEST") != "" }

// Feature puts a cell into the table of docs/results/kernels.md: what a test in a guest has
// seen of its kernel. Elsewhere it does nothing.
func Feature(name, format string, values ...any) {
	if InGuest() {
		fmt.Printf("\n@@feature %s\t%s\n", name, fmt.Sprintf(format, values...))
	}
}
