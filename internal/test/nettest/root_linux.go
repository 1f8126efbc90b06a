package nettest

import (
	"os"
	"testing"
)

// Root skips the test unless it runs as root, and under -short, which leaves
// out whatever needs more than the Go tool chain. In CI (CI=true) it fails where
// root is missing: there a skipped test is one that nobody runs.
func Root(tb testing.TB) {
	tb.Helper()
	switch {
	case testing.Short():
		tb.Skip("-short: it makes network namespaces")
	case os.Geteuid() == 0:
	case os.Getenv("CI") == "true":
		tb.Fatal("this test needs root, and CI=true forbids to skip it")
	default:
		tb.Skip("needs root: it makes network namespaces")
	}
}
