// Package render turns a snapshot into what people and programs read: the
// text screen and the JSON document. It does no I/O beyond the writer it is
// given, reads no clock and knows no kernel.
//
// What is not known is left out of the JSON and is "n/a (reason)" on the
// screen; it is never shown as zero.
package render
