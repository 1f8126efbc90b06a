// Package sandbox lets a process become somebody else and give up everything,
// before it touches what a stranger wrote.
//
// The order is: open with the privileges at hand what takes some; Limit; Become
// the user whose files will be read; Confine. Each step reads back what it has
// done, on every thread: setfsuid(2) and a capability that a container dropped
// fail in silence. All of it is for good, and for a process that does nothing
// else.
package sandbox
