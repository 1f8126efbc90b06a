// Package handshake counts clients, not packets: it follows the TCP handshakes
// of a set of ports and says what happened to each client.
//
// The kernel's own counters (ListenDrops, ListenOverflows) count packets: a
// client that repeats its SYN five times is five of them. Here a client is one
// attempt to connect, its addresses, ports and initial sequence number, and it
// ends in exactly one Outcome.
//
// A Tracker judges the packets that a Tap (package tap) reads; it is pure, and the packets' own
// times are its only clock.
//
// # Who was let in
//
// A client was let in if the server's kernel had a socket for it while it was there. That is
// proved (see decide): by the socket itself, for which the kernel is asked, by what only a
// socket sends, or by a listener that has dropped nothing between the SYN-ACK and the client's
// answer. That a SYN-ACK is not repeated proves it where it was no SYN cookie, of which the
// kernel keeps nothing that it could repeat. While cookies are sent, packets dropped, or
// clients in doubt, the Tap takes the clients' other segments too: each of them may have
// made the socket. What nothing proves is Undecided.
//
// An attempt stays open when its outcome is counted, until it is known whether the client
// got an answer; or, if it left without having been let in, as long as its kernel may still
// repeat what it sent, and be given a socket for it.
//
// A client that was counted as let in, and is reset by the server before it is answered, stays
// let in; it is unanswered.
package handshake
