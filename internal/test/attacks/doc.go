// Package attacks tries on the built agent what a hostile pod and a hostile
// network neighbour would: small files that are made to become large, values
// that are to be betrayed, connections without end. `make attacks` prints what
// the agent said, its memory and its delays.
package attacks
