// Package proof is the one gate of the tests that take minutes or hours, and the list
// of them.
//
// Such a test runs where -run names it, or where the variable TCPDIAG_TESTS asks for
// it: "servers" for those that start real servers (`make test` sets it), "full" for
// proofs, and for other tests at their full size (`make prove` sets it; the results are
// written then). A plain `go test` skips them.
package proof

import (
	"flag"
	"os"
	"testing"
)

// gate is the variable.
const gate = "TCPDIAG_TESTS"

// Full reports whether tests are to run at their full size, and write their results.
func Full() bool { return os.Getenv(gate) == "full" }

// Named reports whether this run is of tests that -run names.
func Named() bool {
	run := flag.Lookup("test.run")
	return run != nil && run.Value.String() != "" && !testing.Short()
}

// Wanted reports whether tests with real servers are to run.
func Wanted() bool { return os.Getenv(gate) != "" || Named() }

// Skip leaves a proof out that nobody has asked for.
func Skip(t testing.TB) {
	t.Helper()
	if !Full() && !Named() {
		t.Skipf("a proof, which takes minutes: -run %s runs it (see CONTRIBUTING.md)", t.Name())
	}
}

// Servers leaves a test out that starts real servers and that nobody has asked for.
func Servers(t testing.TB) {
	t.Helper()
	if !Wanted() {
		t.Skipf("starts real servers, for minutes: -run %s runs it, or %s=servers, which make test sets", t.Name(), gate)
	}
}

// Size is the one where tests run at their full size, the other elsewhere.
func Size[T any](full, usual T) T {
	if Full() {
		return full
	}
	return usual
}
