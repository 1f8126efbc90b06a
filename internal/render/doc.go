// Package render turns a snapshot into what people and programs read: the answer on a
// screen, with -v everything that is known, the JSON document, a recorded incident and the
// runbook of a cause. It does no I/O beyond the writer it is given, reads no clock and
// knows no kernel.
//
// Text (text.go) is where to begin. answer*.go is the answer and its stages, text_listener.go
// and those that it calls are one listener with -v, text_table.go is many. Below is term, the
// terminal; above are watch (one snapshot after the other), runreport, planreport and fleetreport.
//
// What is not known is left out of the JSON and is "n/a (reason)" on the
// screen; it is never shown as zero.
package render
