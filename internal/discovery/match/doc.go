// Package match puts together which connectors a process's configuration has and which
// sockets it listens on, by ports, addresses and the names of its threads; and says of each
// what the kernel and the threads show now. It is pure: values go in, values come out.
package match
