// Package plan foretells what a load would meet at a Tomcat with given limits:
// a simulation of the funnel, of the kernel's retries and of the clients'
// patience. It is pure: it reads no clock, no file and no socket.
package plan

import (
	"slices"
	"time"
)

// Plan is what a load would meet at a Tomcat with the given limits.
type Plan struct {
	Input    Input // with its defaults filled in
	Capacity *int  // clients inside at once; nil without a limit

	// Duration is until the server has finished its last request, also those
	// whose clients have closed long before.
	Duration time.Duration
	// ClientsDone is until the last client was answered or gave up.
	ClientsDone time.Duration
	Outcomes    Outcomes
	Latency     *Latency // nil when nobody was served
	Dropped     Drops
	Retried     int // clients whose first SYN was dropped
	// Wasted requests were executed for clients that had given up: Tomcat
	// notices only when it writes the response.
	Wasted int
	// JustInTime of the served got their response, and JustLate of the read
	// timeouts would have had it, within 1 % of the client's timeout before or
	// after it ran out: in reality these may come out the other way.
	JustInTime, JustLate int
	Stages               []Stage // from the client inwards
	Timeline             []Point

	// Smallest are the least limits under which no client fails, nil when
	// there are none; Why says then why not.
	Smallest *Limits
	Why      string
}

// Outcomes is what the clients saw; they sum to the requests.
type Outcomes struct {
	Served         int
	ConnectTimeout int
	ReadTimeout    int
	Reset          int
}

// Failed is the number of clients that were not served.
func (o Outcomes) Failed() int { return o.ConnectTimeout + o.ReadTimeout + o.Reset }

// Drops are packets, not clients: what ListenDrops would count.
type Drops struct {
	SYN      int // found a queue full
	SynQueue int // of these, the SYN queue
	ACK      int // final ACKs, and the requests sent behind them
}

// Latency is the time from the first SYN to the response, of the served.
type Latency struct {
	P50, P95, P99, Max time.Duration
}

// Limits is a combination of limits.
type Limits struct {
	Threads        int // 0: threads do not limit
	MaxConnections int
	AcceptCount    int
	// BackendConnections is the pool's size, 0 without a backend.
	BackendConnections int
}

// New simulates the load and looks for the smallest limits that serve it.
// The same input always gives the same plan. The error is a *InputError.
func New(in Input) (*Plan, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	in = in.withDefaults()
	p := simulate(in)
	p.Smallest, p.Why = smallest(in)
	return p, nil
}

// Simulate is New without the search for the smallest limits.
func Simulate(in Input) (*Plan, error) {
	if err := in.Validate(); err != nil {
		return nil, err
	}
	return simulate(in.withDefaults()), nil
}

// latencyOf gives the nearest-rank percentiles; it sorts in place.
func latencyOf(served []time.Duration) *Latency {
	if len(served) == 0 {
		return nil
	}
	slices.Sort(served)
	rank := func(percent int) time.Duration { return served[(len(served)*percent+99)/100-1] }
	return &Latency{P50: rank(50), P95: rank(95), P99: rank(99), Max: served[len(served)-1]}
}
