// Command bench measures what tcpdiag costs against the limits that the kernel
// sets: it makes up to 190,000 loopback sockets in a network namespace of its
// own, runs every measurement and its counterpart (a bare loop of system calls,
// ss, an empty ticker, a Tomcat left alone) by turns, and writes the ratios to
// RESULTS.md. It needs root for the namespaces.
//
// A process may be held to 20,000 descriptors, so the sockets live in several
// processes: this program again, under the commands of child.go.
package main
