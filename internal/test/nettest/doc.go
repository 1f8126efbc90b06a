// Package nettest gives tests the real kernel: fresh network namespaces,
// listeners whose accept queue stays full, clients that wait in it, half-open
// connections. Everything goes away with the test.
//
// Sockets belong to the namespace of the thread that made them, so call
// Listen, Queue and the others within NS.Do; what they return works anywhere.
package nettest
