package kernel

import "time"

// unreadMargin is how long before a time in which packets that leave were not read a SYN may have come whose SYN-ACK was not.
const unreadMargin = 10 * time.Millisecond

// Unread is the latest time in which packets that leave were not read, and what the counters say of it.
type Unread struct {
	On       bool
	From, To time.Duration
	Moved    Counters      // since the latest Count up to which they were calm; RSTs that no client accounts for
	Since    time.Duration // when that Count ended
	Until    time.Duration // when the one after it began
	CalmTo   time.Duration // when the counters were last read, and had not moved; without end if not On
	Calm     bool          // Moved has not at all
	Due      bool          // what is open since then has yet to be settled
	Doubt    bool          // the counters are calm and a client is not
	Distrust bool          // of the counters, or of what the kernel is asked
}

// At reports whether what leaves for a SYN of then may not be read.
func (u *Unread) At(at time.Duration) bool {
	return at >= u.From-unreadMargin && (u.On || u.From < u.To && at <= u.To)
}

// ObservedReset takes in a RST that the counters include, and that was read.
func (u *Unread) ObservedReset(at time.Duration) {
	if u.Due && at > u.To && at <= u.Until && u.Moved.Resets > 0 {
		u.Moved.Resets--
	}
}

// Fate is what may have happened to a client without a connection whose answer was not
// read.
type Fate uint8

// The fates.
const (
	FateUnknown Fate = iota
	FateDropped      // its SYN was dropped
	FateCookie       // its SYN was dropped, or answered with a cookie
	FateRefused
	FateLetIn // the server ended its connection, and sent a RST after its FIN
)

// Case is such a client, and what is known of others of its address and port.
type Case struct {
	Trusted bool   // the kernel has had a socket of one of them
	LetIn   bool   // one of them was
	Single  bool   // it has sent one SYN
	Met     Socket // what the kernel has for it
	Killed  bool   // it may have had a connection that was reset
}

// Fate follows from what the kernel has, and from what the counters of that time have
// moved by. Moved.Resets are those that no client accounts for, as Moved.Opened once all are settled.
func (u *Unread) Fate(c Case) Fate {
	moved := &u.Moved
	switch {
	case moved.Resets > 0 && c.Met == NoSocket && (!c.LetIn || c.Trusted && moved.Drops == 0 && !c.Killed):
		return FateRefused
	case !c.Trusted && c.LetIn:
		return FateUnknown // it may have a connection, by other addresses
	case moved.Resets > 0 && (c.LetIn && (c.Met == NoSocket || c.Killed) || moved.Aborted > 0):
		return FateUnknown // it may have been let in and reset
	case !u.Due && u.closed(c):
		return FateLetIn
	case moved.Cookies > 0:
		return FateCookie
	}
	return FateDropped
}

// closed reports whether its connection was one that the server closed with bytes that it had not read,
// behind a FIN: that RST is none of those that end an established connection (EstabResets). Nothing was dropped, more
// were let in than is known of, and the client repeats no SYN.
func (u *Unread) closed(c Case) bool {
	m := &u.Moved
	return c.Met == OnlyListener && c.Single && m.Opened > 0 && m.Resets > 0 && m.Drops == 0 && m.Cookies == 0 && m.Killed == 0
}
