package model

import (
	"net/netip"
	"time"
)

// ClientOutcome is how a client's attempt to connect ended, as its handshake
// shows (internal/handshake says how each is known).
type ClientOutcome int

// The outcomes. Each client ends in exactly one.
const (
	ClientConnected ClientOutcome = iota
	ClientDelayed                 // let in after its SYN or the SYN-ACK was repeated
	ClientGaveUp                  // its SYNs stopped and nothing had answered: a connect timeout
	ClientStalled                 // believes that it is connected; the kernel dropped its ACK
	ClientRefused                 // nothing listened
	ClientReset                   // by the server, before it sent anything
	ClientHalfOpen                // was sent a SYN-ACK, and nothing shows that it answered
	NumClientOutcomes
)

// String is the outcome's name in JSON and in the metrics' outcome label.
func (o ClientOutcome) String() string {
	return [NumClientOutcomes]string{"connected", "delayed", "gave_up", "stalled", "refused", "reset", "half_open"}[o]
}

// NumDelayBuckets is the number of ConnectDelays.Bounds.
const NumDelayBuckets = 10

// ConnectDelays is a histogram of how long clients that were let in late had
// waited.
type ConnectDelays struct {
	Count   uint64
	Sum     float64 // seconds
	Bounds  [NumDelayBuckets]float64
	Buckets [NumDelayBuckets]uint64 // cumulative, for each of Bounds
}

// ClientTotals count clients since their handshakes were first followed. A
// client that connected again is another one.
type ClientTotals struct {
	Outcomes [NumClientOutcomes]uint64
	Delays   ConnectDelays
	// Untracked clients came while too many others were open, or at the moment when a calm
	// namespace got into trouble: how they ended is not known. An estimate.
	Untracked uint64
}

// Sub is what was counted since before.
func (t ClientTotals) Sub(before ClientTotals) ClientTotals {
	for o := range t.Outcomes {
		t.Outcomes[o] -= before.Outcomes[o]
	}
	t.Untracked -= before.Untracked
	t.Delays.Count -= before.Delays.Count
	t.Delays.Sum -= before.Delays.Sum
	for i := range t.Delays.Buckets {
		t.Delays.Buckets[i] -= before.Delays.Buckets[i]
	}
	return t
}

// Add is both together.
func (t ClientTotals) Add(other ClientTotals) ClientTotals {
	for o := range t.Outcomes {
		t.Outcomes[o] += other.Outcomes[o]
	}
	t.Untracked += other.Untracked
	t.Delays.Count += other.Delays.Count
	t.Delays.Sum += other.Delays.Sum
	if other.Delays.Bounds[0] > 0 {
		t.Delays.Bounds = other.Delays.Bounds
	}
	for i := range t.Delays.Buckets {
		t.Delays.Buckets[i] += other.Delays.Buckets[i]
	}
	return t
}

// Waits are the shortest and the longest time that some clients waited.
type Waits struct{ Shortest, Longest time.Duration }

// And are the waits of both.
func (w Waits) And(other Waits) Waits {
	switch {
	case w.Longest == 0:
		return other
	case other.Longest == 0:
		return w
	}
	return Waits{min(w.Shortest, other.Shortest), max(w.Longest, other.Longest)}
}

// Clients are the attempts to connect to a listener that were decided in the
// interval, and those that are open.
type Clients struct {
	ClientTotals
	// Waits are those of the delayed; zero where only their mean is known.
	Waits Waits
	// Observed is the part of the interval in which the handshakes were followed.
	Observed time.Duration
	Waiting  int // open attempts that nothing has answered yet
	Stalling int // open attempts to which the SYN-ACK is being repeated
	// PacketsLost: the packets of the namespace that could not be read within the
	// interval; outcomes may be wrong by as many.
	PacketsLost uint64
	// Losers are the addresses from which most clients were turned away lately.
	Losers []ClientSource
	// Balancer is the one address that at least every second client comes from.
	Balancer *ClientSource
	Flood    *ClientFlood
}

// TurnedAway is the number of clients that did not get in.
func (c *Clients) TurnedAway() uint64 {
	o := &c.Outcomes
	return o[ClientGaveUp] + o[ClientStalled] + o[ClientRefused] + o[ClientReset]
}

// WithoutRoom is the number of clients for which there was none at first: they
// were turned away, let in late, or still try.
func (c *Clients) WithoutRoom() uint64 {
	o := &c.Outcomes
	return o[ClientGaveUp] + o[ClientDelayed] + o[ClientStalled] + o[ClientReset] + uint64(max(c.Waiting+c.Stalling, 0))
}

// ClientSource is an address that clients come from.
type ClientSource struct {
	Addr    netip.Addr
	Clients uint64
}

// ClientFlood is a SYN flood with spoofed addresses: many attempts, each from
// another address, a single SYN, nobody answers.
type ClientFlood struct {
	Attempts uint64 // within Period
	Sources  uint64 // addresses, estimated
	Period   time.Duration
	Certain  bool // else they may be clients with a connect timeout below a second
}
