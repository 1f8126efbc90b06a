package outcome

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
