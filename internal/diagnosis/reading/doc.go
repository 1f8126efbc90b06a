// Package reading says what one snapshot of a listener shows, and what two of them show
// together (Pair): how full each stage is, what is known of its limits, whether the process
// runs. It names no cause and writes no sentence.
package reading
