// Package loadtest turns the snapshots that were published while a load test ran into
// its result: how many clients were offered, served and turned away and how, which
// limit was reached first and at which rate, and the least settings that would have
// served the load. It is pure: snapshots come in, values go out.
//
// Read course.go first (what is kept of each listener, second by second), then
// result.go.
package loadtest
