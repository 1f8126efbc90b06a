// Package promexport exports a snapshot as Prometheus metrics. A scrape is
// answered from memory: nothing here waits for the kernel, takes a lock or
// reads a clock.
//
// Absent is not zero: what this kernel, this user or this configuration cannot
// show has no series. Closed label sets (phase, cause, packet, status) exist
// at 0 from the first scrape, or increase() would miss the first event. pid,
// pod and container live only in tcpdiag_listener_info, so that a restart of
// the server does not give every series a new identity.
package promexport
