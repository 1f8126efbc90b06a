// Kernels boots packaged kernels in an emulator, runs there what depends on the
// kernel, and writes docs/results/kernels.md of what it found: `make prove PROOF=kernels`.
//
// The guest holds nothing but busybox, some modules, tcpdiag and test binaries.
// It prints their output on the console, with lines that begin with @@ between
// them (see lines.go); the host reads those.
package main
