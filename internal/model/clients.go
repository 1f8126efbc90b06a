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
	ClientConnected ClientOutcome = iota // let in
	ClientDelayed                        // let in late
	ClientGaveUp                         // its SYNs stopped and no SYN-ACK had left, or reached it: a connect timeout
	ClientStalled                        // believed that it was connected, and left without having been let in
	ClientRefused                        // nothing listened
	ClientReset                          // by the server, before it sent anything
	ClientHalfOpen                       // was sent a SYN-ACK, and nothing of it came afterwards
	ClientUndecided                      // no proof settled it in its time
	NumClientOutcomes
)

// String is the outcome's name in JSON and in the metrics' outcome label.
func (o ClientOutcome) String() string {
	return [NumClientOutcomes]string{"connected", "delayed", "gave_up", "stalled", "refused", "reset", "half_open", "undecided"}[o]
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

// NumResponseBuckets is the number of FirstResponses.Bounds.
const NumResponseBuckets = 11

// FirstResponses is a histogram of how long clients waited for the first byte of an answer,
// from their first SYN on, queues included: of a sixteenth of them, and of none while a busy
// server is calm.
type FirstResponses struct {
	Count   uint64
	Sum     float64 // seconds
	Bounds  [NumResponseBuckets]float64
	Buckets [NumResponseBuckets]uint64 // cumulative, for each of Bounds
}

func (r FirstResponses) sub(before FirstResponses) FirstResponses {
	r.Count = less(r.Count, before.Count)
	r.Sum -= before.Sum
	for i := range r.Buckets {
		r.Buckets[i] = less(r.Buckets[i], before.Buckets[i])
	}
	return r
}

func (r FirstResponses) add(other FirstResponses) FirstResponses {
	r.Count += other.Count
	r.Sum += other.Sum
	if other.Bounds[0] > 0 {
		r.Bounds = other.Bounds
	}
	for i := range r.Buckets {
		r.Buckets[i] += other.Buckets[i]
	}
	return r
}

// Quantile is the time within which a share of the clients had the first byte, by linear
// interpolation in its bucket; false without any, or beyond the last bound.
func (r *FirstResponses) Quantile(share float64) (seconds float64, known bool) {
	rank := share * float64(r.Count)
	from, below := 0., uint64(0)
	for i, n := range r.Buckets {
		if n > 0 && float64(n) >= rank {
			return from + (r.Bounds[i]-from)*(rank-float64(below))/float64(n-below), true
		}
		from, below = r.Bounds[i], n
	}
	return 0, false
}

// FirstBytes are quantiles of FirstResponses: 0 beyond the last of its bounds.
type FirstBytes struct {
	Clients                            uint64
	MeanSeconds                        float64
	P50Seconds, P95Seconds, P99Seconds float64
}

// FirstBytes says how long clients waited for the first byte of an answer; nil where that is not known.
func (c *Clients) FirstBytes() *FirstBytes {
	r := &c.Responses
	if !c.Answers.Known || r.Count == 0 {
		return c.ReportedFirstBytes
	}
	within := func(share float64) float64 {
		seconds, _ := r.Quantile(share)
		return seconds
	}
	return &FirstBytes{r.Count, r.Sum / float64(r.Count), within(.5), within(.95), within(.99)}
}

// ClientTotals count clients since their handshakes were first followed. A
// client that connected again is another one.
type ClientTotals struct {
	Outcomes [NumClientOutcomes]uint64
	// Begun are the attempts that began: those that came to an outcome, and those that are
	// open more than there were. Of a listener who was refused is none: nothing listened.
	Begun uint64
	// Withdrawn are those of the Begun that come to no outcome here: of a listener those that waited, and were refused
	// when it had closed, and those that are no longer followed.
	Withdrawn uint64
	// LetIn had a socket of the server's kernel while they were there: all that are connected
	// or delayed, and those of the reset that had one.
	LetIn uint64
	// LetInLate were given a socket after they had left, by a FIN or a retransmission that the
	// kernel took late. With LetIn they are what the kernel counts as PassiveOpens.
	LetInLate uint64
	// GaveUpUnreached clients, of those that gave up, were sent SYN-ACKs and repeated their SYN all the same.
	GaveUpUnreached uint64
	// ResetInAnswer clients were let in, and reset by the server when they had not acknowledged all that it had sent: it
	// discards what it has not sent yet, and sends nothing again.
	ResetInAnswer uint64
	// Aborted connections the server ended by a RST of its own, whether or not it had answered. Late segments came for connections that
	// it had ended before, and were answered by a RST. Both are what was seen to leave its port.
	Aborted, Late uint64
	// Alerted clients had sent something, and the server ended the connection behind 7 bytes, the length of a TLS alert.
	Alerted uint64
	// TLSBegun clients were seen to begin a TLS handshake; more may have, while it is not looked for.
	TLSBegun uint64
	// TLSEnded clients began a TLS handshake, had the server's answer, and ended the connection before their part of it was done.
	TLSEnded uint64
	// Unheard clients were connected, and something in front of their sockets dropped what they sent, or rejected it.
	Unheard   uint64
	Answers   ClientAnswers
	Delays    ConnectDelays
	Responses FirstResponses
	// Untracked clients came while too many others were open, or at the moment when a calm
	// namespace got into trouble: how they ended is not known. An estimate.
	Untracked uint64
}

// Open are the attempts that began, and of which it is not known yet what becomes of them.
func (t *ClientTotals) Open() uint64 {
	decided := t.Withdrawn
	for _, n := range t.Outcomes {
		decided += n
	}
	return t.Begun - min(t.Begun, decided)
}

// Came are the attempts that began, less those that are known by now to be checks: nobody waits for an answer to one.
func (t *ClientTotals) Came() uint64 {
	if !t.Answers.Known {
		return t.Begun
	}
	return t.Begun - min(t.Begun, t.Answers.Checks)
}

// TurnedAway is the number of clients that got no answer: no two parts of the sum have a
// client in common.
func (t *ClientTotals) TurnedAway() uint64 {
	o := &t.Outcomes
	return o[ClientGaveUp] + o[ClientStalled] + o[ClientRefused] + o[ClientReset] + t.Answers.Unanswered
}

// ClientAnswers say which of the clients that were let in, and not reset, the server sent
// anything. They are counted when a client's connection ends.
type ClientAnswers struct {
	// Known is false where the first byte of the server is no answer, as with TLS; Why says so.
	Known bool
	// Least: not Known, and the Unanswered are counted all the same: whatever the protocol is, these had no answer.
	Least      bool
	Why        string
	Answered   uint64 // sent at least a byte and received one
	Unanswered uint64 // sent at least a byte and received none: a read timeout, or the server ended the connection
	Closed     uint64 // of the Unanswered: the server ended the connection
	Checks     uint64 // sent no byte: a check of the port, a browser's spare connection
	Unclear    uint64 // it was not seen how they ended, or what they had received by then
}

func (a ClientAnswers) sub(before ClientAnswers) ClientAnswers {
	a.Answered = less(a.Answered, before.Answered)
	a.Unanswered = less(a.Unanswered, before.Unanswered)
	a.Closed = less(a.Closed, before.Closed)
	a.Checks = less(a.Checks, before.Checks)
	a.Unclear = less(a.Unclear, before.Unclear)
	return a
}

func (a ClientAnswers) add(other ClientAnswers) ClientAnswers {
	a.Known, a.Least = a.Known || other.Known, a.Least || other.Least
	a.Answered += other.Answered
	a.Unanswered += other.Unanswered
	a.Closed += other.Closed
	a.Checks += other.Checks
	a.Unclear += other.Unclear
	return a
}

// Sub is what was counted since before.
func (t ClientTotals) Sub(before ClientTotals) ClientTotals {
	for o := range t.Outcomes {
		t.Outcomes[o] = less(t.Outcomes[o], before.Outcomes[o])
	}
	t.Begun = less(t.Begun, before.Begun)
	t.Withdrawn = less(t.Withdrawn, before.Withdrawn)
	t.LetIn = less(t.LetIn, before.LetIn)
	t.LetInLate = less(t.LetInLate, before.LetInLate)
	t.GaveUpUnreached = less(t.GaveUpUnreached, before.GaveUpUnreached)
	t.Unheard = less(t.Unheard, before.Unheard)
	t.ResetInAnswer = less(t.ResetInAnswer, before.ResetInAnswer)
	t.Aborted = less(t.Aborted, before.Aborted)
	t.Late = less(t.Late, before.Late)
	t.Alerted = less(t.Alerted, before.Alerted)
	t.TLSBegun = less(t.TLSBegun, before.TLSBegun)
	t.TLSEnded = less(t.TLSEnded, before.TLSEnded)
	t.Answers = t.Answers.sub(before.Answers)
	t.Responses = t.Responses.sub(before.Responses)
	t.Untracked = less(t.Untracked, before.Untracked)
	t.Delays.Count = less(t.Delays.Count, before.Delays.Count)
	t.Delays.Sum -= before.Delays.Sum
	for i := range t.Delays.Buckets {
		t.Delays.Buckets[i] = less(t.Delays.Buckets[i], before.Delays.Buckets[i])
	}
	return t
}

// less is never below zero: a counter may have begun again.
func less(now, before uint64) uint64 {
	return now - min(now, before)
}

// Add is both together.
func (t ClientTotals) Add(other ClientTotals) ClientTotals {
	for o := range t.Outcomes {
		t.Outcomes[o] += other.Outcomes[o]
	}
	t.Begun += other.Begun
	t.Withdrawn += other.Withdrawn
	t.LetIn += other.LetIn
	t.LetInLate += other.LetInLate
	t.GaveUpUnreached += other.GaveUpUnreached
	t.Unheard += other.Unheard
	t.ResetInAnswer += other.ResetInAnswer
	t.Aborted += other.Aborted
	t.Late += other.Late
	t.Alerted += other.Alerted
	t.TLSBegun += other.TLSBegun
	t.TLSEnded += other.TLSEnded
	t.Answers = t.Answers.add(other.Answers)
	t.Responses = t.Responses.add(other.Responses)
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
	Settling int // open attempts that were answered, most by a SYN-ACK, and of which no more is known yet
	Stalling int // open attempts that were sent a SYN-ACK, and whose ACK was dropped or is not known to have been taken
	// Unreached are open attempts that were sent a SYN-ACK, and repeat their SYN: it does not reach them.
	Unreached int
	// Estimated: the clients that were let in are not as many as the sockets that the kernel
	// made, so that the counts are wrong somewhere.
	Estimated bool
	// PacketsLost: the packets of the namespace that could not be read within the
	// interval; outcomes may be wrong by as many.
	PacketsLost uint64
	// AfterDrops: the listener is not known to have dropped a packet, or the youngest of the
	// clients in trouble began afterwards.
	AfterDrops bool
	// RefusedAt is the address at which the latest of the refused asked, zero where none was or
	// it is not known.
	RefusedAt netip.AddrPort
	// RefusedBefore: it has not listened for long, and the refused had come before.
	RefusedBefore bool
	// Losers are the addresses from which most clients were turned away lately.
	Losers []ClientSource
	// Balancer is the one address that at least every second client comes from.
	Balancer *ClientSource
	// Proxies are the three addresses at most that four of five clients come from: their
	// attempts are connections of theirs, and not people.
	Proxies []ClientSource
	Flood   *ClientFlood
	// Arrivals are the latest attempts that began without a pause, nil where none is known.
	Arrivals *Arrivals
	// ReportedFirstBytes are those of a document, which has no histogram.
	ReportedFirstBytes *FirstBytes
}

// Arrivals are attempts that began without a pause of some seconds between them: those of a
// burst, or of a stream that may still flow.
type Arrivals struct {
	Clients     uint64
	First, Last time.Duration // before the snapshot, to the time between two
	// Answered is how long before the snapshot the latest of anybody's answers came, negative where
	// none is remembered.
	Answered time.Duration
}

// settledAfter is a time within which every attempt but those in trouble is decided.
const settledAfter = 10 * time.Second

// Knows reports whether something is known of an outcome: in too short a look none of the
// open attempts may have come to it yet, which is no zero.
func (c *Clients) Knows(o ClientOutcome) bool {
	if c.Observed >= settledAfter || c.Outcomes[o] > 0 {
		return true
	}
	switch o {
	case ClientGaveUp:
		return c.Waiting+c.Unreached == 0
	case ClientConnected, ClientDelayed, ClientStalled, ClientHalfOpen, ClientUndecided:
		return c.Settling+c.Stalling+c.Unreached == 0
	}
	return true
}

// NoneAnswered is how many clients were let in and wait for an answer, where none of those that came
// while they were followed has had one, and none has left without; 0 where that is not so, or not known.
// Some of them may have asked for nothing yet.
func (c *Clients) NoneAnswered() uint64 {
	a := &c.Answers
	if !a.Known || a.Answered+a.Unanswered > 0 || c.Flood != nil || c.PacketsLost > 0 {
		return 0
	}
	in := c.Outcomes[ClientConnected] + c.Outcomes[ClientDelayed]
	return in - min(in, a.Checks+a.Unclear)
}

// WithoutRoom is the number of clients for which there was none at first: they
// were turned away, let in late, or still try.
func (c *Clients) WithoutRoom() uint64 {
	o := &c.Outcomes
	return o[ClientGaveUp] + o[ClientDelayed] + o[ClientStalled] + o[ClientReset] + uint64(max(c.Trying(), 0))
}

// Trying are the open attempts in trouble: who began to connect, and still tries.
func (c *Clients) Trying() int { return c.Waiting + c.Stalling + c.Unreached }

// NoneLetIn means that clients try to connect, and none of those that came while they were followed has
// been let in yet, nor has one ended.
func (c *Clients) NoneLetIn() bool {
	return c.Waiting+c.Settling+c.Unreached > 0 && c.Outcomes == [NumClientOutcomes]uint64{} && c.Flood == nil && c.PacketsLost == 0
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
