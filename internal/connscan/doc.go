// Package connscan reads the connections of one network namespace at a time: by a walk
// through the kernel's table, by exact requests for the connections that a walk has found,
// or by exact requests for a random part of thousands that are calm. One reading serves
// everything that is wanted at that moment: the watched listeners' connections by phase,
// and the outgoing connections of their processes. What it found is put into facts.
//
// Read scanner.go first, then walk.go. It is for one goroutine at a time.
package connscan
