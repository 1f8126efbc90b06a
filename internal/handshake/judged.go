package handshake

import (
	"net/netip"
	"time"
)

// Judged is what is known of one client: when its outcome is counted, when it is given a
// socket though it has left, and when it is known whether it was answered.
type Judged struct {
	Server, Client   netip.AddrPort
	Outcome          Outcome
	LetIn, LetInLate bool
	Delay            time.Duration // of one that was let in: from its first SYN, less a round trip
	Answer           Answer
	Ended            time.Duration // its FIN, or its or the server's RST, after its first SYN; 0 for none
}

// Answer says whether a client that was let in was sent anything by the server.
type Answer uint8

// The answers.
const (
	NoAnswerKnown Answer = iota // it was not let in, was reset, or may yet be answered
	WasAnswered
	WasUnanswered // sent at least a byte, left or was reset, and had received none
	WasCheck      // sent none
	AnswerUnclear
)

// judge says so to who asked for it.
func (t *Tracker) judge(a *attempt, o Outcome, answer Answer) {
	if t.judged == nil {
		return
	}
	e := t.endpoints[a.endpoint]
	j := Judged{
		Server: netip.AddrPortFrom(e.addr.Netip(), e.port), Client: netip.AddrPortFrom(a.client.Netip(), a.clientPort),
		Outcome: o, LetIn: a.has(inside), LetInLate: a.has(late), Answer: answer, Ended: ms(a.ended),
	}
	if a.has(inside) {
		j.Delay = a.delay()
	}
	t.judged(j)
}
