// Package assemble makes snapshots of facts: (state, facts) → (state, snapshot). It is
// pure, asks nobody and knows no clock. Each listener is judged once; the state is what the
// next judgement compares with.
//
// Read assemble.go first. Drops that wait for a cause get it by Causes, before the totals
// are taken; Assemble then makes the listeners of the readings (compose.go), gives them
// what is counted (counted.go) and judges them (history.go).
package assemble
