// Command tcpdiag-archive takes incidents away from the machine that they were seen
// on: it reads the folder in which the agent records them, sends a log record by OTLP
// when one begins, changes its cause and ends, and writes the recordings to an object
// store. It lists what is there, and makes reports of it.
//
// It is a module of its own: the software kits of three clouds are none of the
// agent's, which makes no outbound connection. It needs no privilege but to read
// that folder.
package main
