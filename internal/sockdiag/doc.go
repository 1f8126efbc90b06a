// Package sockdiag asks the kernel for TCP sockets: inet_diag over netlink
// (linux/inet_diag.h). It encodes and decodes the messages itself, over one
// reused buffer: an exact request for a listener or a connection allocates
// nothing, and a walk of the socket table nothing per socket.
//
// No request needs a privilege. All see the network namespace of the thread
// that called Dial.
package sockdiag
