// Package outcome says what became of the clients of an address and port: the outcomes, each
// client's one, and an Account that counts them, with what else is known of all of them: how long they
// waited, where they come from, whether they are a flood. Its memory is bounded, whoever sends.
package outcome

// Outcome is how an attempt to connect ended.
type Outcome uint8

// The outcomes. Each client ends in exactly one.
const (
	// Connected: let in.
	Connected Outcome = iota
	// Delayed: let in 200 ms or more after its first SYN, beside what its handshake takes.
	Delayed
	// GaveUp: its SYNs, however few, stopped and no SYN-ACK had left; or none that
	// found the client still there after it had repeated its SYN, or that reached it: it
	// repeated the SYN that was answered, and never acknowledged one.
	GaveUp
	// Stalled: it was sent a SYN-ACK or a SYN cookie, so believes that it is connected, and
	// left, by FIN, RST or silence, without having been let in.
	Stalled
	// Refused: its SYN was answered with RST: nothing listens on the port.
	Refused
	// Reset: reset by the server before it sent anything.
	Reset
	// HalfOpen: it was sent a SYN-ACK and nothing of it came afterwards, while that was
	// read, or it answered its first SYN-ACK by a RST: a spoofed address, a scan, a check of the
	// port that ends there, a client that disappeared.
	HalfOpen
	// Undecided: no proof settled in its time how it ended.
	Undecided
	NumOutcomes
)

// String is the outcome's name in JSON and in the metrics' outcome label.
func (o Outcome) String() string {
	return [NumOutcomes]string{"connected", "delayed", "gave_up", "stalled", "refused", "reset", "half_open", "undecided"}[o]
}

// Failed reports whether the client was turned away.
func (o Outcome) Failed() bool {
	return o == GaveUp || o == Stalled || o == Refused || o == Reset
}

// Answer says whether a client that was let in was sent anything by the server.
type Answer uint8

// The answers.
const (
	NoAnswerKnown Answer = iota // it was not let in, was reset, or may yet be answered
	WasAnswered
	WasUnanswered // sent at least a byte, left or was reset, and had received none
	WasClosed     // the same, and it was the server that ended the connection
	WasCheck      // sent none
	AnswerUnclear
)
