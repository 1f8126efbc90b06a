// Package mutate runs a fuzz target's body on mutations of its corpus in an ordinary
// test: the same ones each time, each within the limits of the process that parses
// what strangers wrote. It is for tests only.
package mutate
