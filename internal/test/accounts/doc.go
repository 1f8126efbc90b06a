// Package accounts holds what the handshakes say of clients against what the clients say
// themselves, and against the kernel. Each client keeps its own account: when it sent its
// SYN, when connect(2) returned, when the first byte of an answer came, how and when it
// ended. The kernel's trace (sock:inet_sock_set_state) says when it made a socket for each,
// and PassiveOpens how many.
package accounts
