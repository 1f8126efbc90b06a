// Package handshake counts clients, not packets: it follows the TCP handshakes
// of a set of ports and says what happened to each client.
//
// The kernel's own counters (ListenDrops, ListenOverflows) count packets: a
// client that repeats its SYN five times is five of them. Here a client is one
// attempt to connect, its addresses, ports and initial sequence number, and it
// ends in exactly one Outcome.
//
// A Tap reads the packets from the kernel (packet(7)) in the network namespace
// in which it was opened: incoming SYNs and RSTs, outgoing SYN-ACKs and RSTs,
// of the watched ports only, cut off behind the TCP header. A Tracker judges
// them; it is pure, and the packets' own times are its only clock.
//
// # What packets alone cannot prove
//
// A SYN-ACK that is not repeated means that the kernel took the client's ACK
// (reqsk_timer_handler in net/ipv4/inet_connection_sock.c), except when it was
// a SYN cookie, of which the kernel keeps nothing that it could repeat. While
// cookies are sent, and while SYN-ACKs are being repeated, the Tap therefore
// takes the clients' other segments too. A client of whom nothing was seen
// after a SYN cookie is HalfOpen, neither connected nor lost.
//
// A client that was in the accept queue for longer than a SYN-ACK is
// followed, and is reset because the listener closes, has been counted as
// connected. The listener's queue resets count those.
package handshake
