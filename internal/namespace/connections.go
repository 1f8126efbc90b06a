package namespace

import "github.com/tcpdiag/tcpdiag/internal/sockdiag"

// Walk goes once through the table of connections; see Kernel.
func (n *Namespace) Walk(wanted sockdiag.Wanted, restart func(), found func(*sockdiag.Socket) error) error {
	n.walking.Lock()
	defer n.walking.Unlock()
	if !n.Open() {
		return ErrClosed
	}
	return n.kernel.Walk(wanted, restart, found)
}

// Connections asks for known connections; see Kernel.
func (n *Namespace) Connections(ids []sockdiag.ConnectionID, answer func(int, *sockdiag.Socket, error)) error {
	n.walking.Lock()
	defer n.walking.Unlock()
	if !n.Open() {
		return ErrClosed
	}
	return n.kernel.Connections(ids, answer)
}

// Turnover is how many connections came and were reset in a namespace so far.
type Turnover struct {
	// Opened are PassiveOpens and ActiveOpens: every connection counts in one of
	// them before anybody can use it (tcp_create_openreq_child, tcp_connect), so that
	// there is no new one as long as their sum stands. Known is false where the
	// kernel's counters cannot be read.
	Opened   uint64
	Accepted uint64 // PassiveOpens
	Known    bool
	Resets   uint64 // EstabResets
}

// TurnoverOf reads it.
func TurnoverOf(n *Namespace) Turnover {
	n.shared.turn.Lock()
	defer n.shared.turn.Unlock()
	if !n.Open() {
		return Turnover{}
	}
	counters := make(map[string]uint64, 24)
	if n.kernel.Counters(counters) != nil {
		return Turnover{}
	}
	passive, ok1 := counters["PassiveOpens"]
	active, ok2 := counters["ActiveOpens"]
	return Turnover{Opened: passive + active, Accepted: passive, Known: ok1 && ok2, Resets: counters["EstabResets"]}
}
