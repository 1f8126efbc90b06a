// Package timers says when a kernel sends a SYN, a SYN-ACK or data again, and so when it has stopped. It is pure.
package timers

import "time"

const (
	// First is when a SYN-ACK is repeated for the first time (TCP_TIMEOUT_INIT), as is a SYN; the times double.
	First = time.Second
	// Slack is for timers that expire late.
	Slack = time.Second
	// AtOnce is less than any timeout of a SYN (TCP_TIMEOUT_INIT).
	AtOnce = First / 2
	// FirstSYN is for clients that repeat their first SYN after three seconds
	// (RFC 1122, 4.2.3.1); Linux does after one.
	FirstSYN = 4 * time.Second
	// Challenged is for a client whose port was used before, while the server still has that connection: its
	// SYN is answered by a challenge ACK (RFC 5961), which it resets, and it repeats the SYN at once (TCP_TIMEOUT_MIN
	// in tcp_rcv_synsent_state_process). Linux without tcp_syn_linear_timeouts (before 6.5) repeats it 2 s and 6 s
	// later, and the network may lose one of these.
	Challenged = 6*time.Second + Slack
	// MostSYN covers the longest time between two SYNs of Linux with tcp_syn_retries 6.
	MostSYN = 70 * time.Second
	// MostData is the longest time between two of data (TCP_RTO_MAX).
	MostData = 120 * time.Second
	// still is how much later than the next is due a client that repeats its data, at twice the time before each, has
	// stopped. Where it was lost on its way, and the client is let in later, that corrects it.
	still = 10 * time.Second
)

// SYN is until the next SYN comes, or the one after it where the network loses that. gap is between the two before.
func SYN(gap time.Duration) time.Duration { return min(max(FirstSYN, 6*gap+Slack), MostSYN) }

// SynAck is until the next SYN-ACK leaves, after those that were repeated.
func SynAck(repeats uint8) time.Duration { return First<<min(repeats, 6) + Slack }

// Data is until the next data comes of a client. since is from its SYN to its latest: as much time has to pass again, or that
// many times as much.
func Data(since time.Duration, times int) time.Duration {
	return min(time.Duration(times)*since, MostData) + still
}
