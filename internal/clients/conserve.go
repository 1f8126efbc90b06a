package clients

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/tap"
)

const (
	// firstBase is when those have been let in whose SYN came before the tap was opened.
	firstBase = 10 * time.Second
	// conservedWithin is how long a socket may be counted before its client.
	conservedWithin = 5 * time.Second
	// thrownAway: one of that many sockets may be the second that was made for a client, on two
	// processors at once, of which the kernel keeps one (inet_csk_complete_hashdance). Of
	// bursts into a full queue one of forty was.
	thrownAway = 20
)

// conservation holds the clients that were let in against the sockets that the kernel made
// for clients (PassiveOpens, tcp_create_openreq_child): each is one, whenever it was let in,
// where the handshakes of all ports of the namespace are followed. Elsewhere they are at
// most as many.
type conservation struct {
	based  bool
	opened uint64    // when it began
	before uint64    // sockets without a client when it began: theirs had come before
	since  time.Time // when more had none, zero if they have
	broken time.Time // when it last did not hold, zero for never
	ended  uint64    // clients of ports that are no longer followed
	rest   uint64    // sockets at ports that are not followed
	alone  bool
}

// check takes in a report of what was followed since opened.
func (c *conservation) check(r *tap.Report, alone bool, opened, at time.Time) {
	if r.Opened == nil {
		return
	}
	in, unsettled := c.ended, r.Lost
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		in += e.LetIn + e.LetInLate
		if e.Ended { // what was open there is forgotten
			c.ended += e.LetIn + e.LetInLate
			c.based = false
		}
		unsettled += uint64(e.Open()+e.Left) + e.Untracked +
			e.Clients[outcome.Undecided] + e.Clients[outcome.Reset]
	}
	if !alone || !c.alone { // it begins again
		c.based, c.alone = false, alone
	}
	c.rest = *r.Opened - min(in, *r.Opened)
	switch {
	case in > *r.Opened:
		c.broken = at
	case !alone || at.Sub(opened) < firstBase:
	case !c.based:
		c.based, c.opened, c.before, c.since = true, *r.Opened, c.rest, time.Time{}
	case c.rest <= c.before+unsettled+(*r.Opened-c.opened)/thrownAway:
		c.since = time.Time{}
	case c.since.IsZero():
		c.since = at
	case at.Sub(c.since) >= conservedWithin:
		c.broken = at
	}
}

// elsewhere are the clients that were let in at ports that are not followed; nil where all
// are.
func (c *conservation) elsewhere() *uint64 {
	if c.alone {
		return nil
	}
	return new(c.rest)
}
