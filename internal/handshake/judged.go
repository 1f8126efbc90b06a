package handshake

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
)

// Judged is what is known of one client: when its outcome is counted, when it is given a
// socket though it has left, and when it is known whether it was answered.
type Judged struct {
	Server, Client   netip.AddrPort
	Outcome          outcome.Outcome
	LetIn, LetInLate bool
	Delay            time.Duration // of one that was let in: from its first SYN, less a round trip
	Answer           outcome.Answer
	Ended            time.Duration // its FIN, or its or the server's RST, after its first SYN; 0 for none
}

// judge says so to who asked for it.
func (t *Tracker) judge(a *attempt, o outcome.Outcome, answer outcome.Answer) {
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
