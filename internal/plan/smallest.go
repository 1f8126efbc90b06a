package plan

import (
	"fmt"
	"math"
	"sort"
)

// smallest looks for the least limits under which every client is served and
// none has to try twice. Settings that work only because dropped SYNs are
// repeated are not offered: whether a client then gets in is luck.
//
// Threads come first, as if there were no limit in front of them. What is
// inside at the peak is then shared out between the other two: the accept
// queue keeps the given acceptCount, because it also absorbs what comes faster
// than accept() is called; maxConnections takes the rest but is not raised
// above the given one; what does not fit raises acceptCount. Taking 1 from any
// of the three turns somebody away, unless it is already 1.
//
// Where threads do not limit (virtual ones), maxConnections is what says how
// many requests are worked on at once.
func smallest(in Input) (limits *Limits, why string) {
	alone := in.alone() + in.RoundTrip
	if !in.TimeoutFromConnect {
		alone += in.RoundTrip
	}
	switch {
	case in.ClientTimeout > 0 && alone >= in.ClientTimeout:
		return nil, fmt.Sprintf("a request alone takes %s, and its client waits no longer than %s", inWords(alone), inWords(in.ClientTimeout))
	case in.late(in.alone()):
		return nil, fmt.Sprintf("a request alone takes all but %s of its client's timeout, too little to count on: lengthen the timeout", inWords(in.ClientTimeout-alone))
	}
	if in.ConnectTimeout > 0 && in.RoundTrip > in.ConnectTimeout {
		return nil, fmt.Sprintf("the round trip of %s is longer than the connect timeout (%s)", inWords(in.RoundTrip), inWords(in.ConnectTimeout))
	}
	f := funnel{in: in, pool: newFreePool(in)}
	if in.BackendConnections > 0 { // the fewest that serve everybody, with a thread for each request
		f.pool.in.BackendConnections = 1 + sort.Search(in.Requests-1, func(n int) bool {
			f.pool.in.BackendConnections = n + 1
			return f.pool.serves(in.Requests)
		})
		f.in.BackendConnections = f.pool.in.BackendConnections
	}
	f.workers = 1 + sort.Search(in.Requests-1, func(n int) bool { return f.pool.serves(n + 1) })
	f.peak = f.pool.peak(f.workers)
	f.connected = min(in.Requests, int(math.Ceil(float64(f.workers)*(1+in.Linger.Seconds()/in.alone().Seconds()))))
	limits, why = f.raiseAcceptCount(f.shareOut())
	if limits != nil {
		limits.BackendConnections = f.in.BackendConnections
	}
	return limits, why
}

// funnel shares out the room that a load needs.
type funnel struct {
	in        Input
	pool      *freePool
	workers   int // the least threads, or connections where those are what limits, that answer in time
	connected int // the connections that have as many requests in service
	peak      int // the room that this takes
}

// shareOut makes room for everybody in front of and at the workers.
func (f *funnel) shareOut() *Limits {
	connections := f.connections(f.in.AcceptCount)
	limits := &Limits{Threads: f.workers, MaxConnections: connections, AcceptCount: max(1, f.peak-1-connections)}
	if f.in.Threads < 0 {
		limits.Threads, limits.AcceptCount = 0, max(1, f.pool.peak(connections)-1-connections)
	}
	return limits
}

// connections are the fewest that, together with an accept queue, have room for
// every client, within the given maxConnections.
func (f *funnel) connections(acceptCount int) int {
	need := f.peak - 1 - acceptCount
	if f.in.Threads < 0 { // the more there are, the sooner each is free again
		need = f.connected + sort.Search(f.in.Requests-f.connected, func(n int) bool {
			return f.connected+n+acceptCount+1 >= f.pool.peak(f.connected+n)
		})
	}
	if f.in.MaxConnections >= 0 {
		need = min(need, f.in.MaxConnections)
	}
	return max(f.connected, need)
}

// raiseAcceptCount proves the limits by simulation. Half-open connections may
// need more acceptCount when syncookies are off; maxConnections then needs less.
func (f *funnel) raiseAcceptCount(limits *Limits) (*Limits, string) {
	serves := func(acceptCount int) bool {
		try := *limits
		try.AcceptCount = acceptCount
		p := simulate(f.in.withLimits(try))
		return p.Outcomes.Failed() == 0 && p.Dropped == Drops{}
	}
	least := limits.AcceptCount
	if serves(least) {
		return limits, ""
	}
	n := sort.Search(max(0, f.in.Requests-least), func(n int) bool { return serves(least + 1 + n) })
	if n == max(0, f.in.Requests-least) {
		return nil, "SYNs are dropped at three quarters of tcp_max_syn_backlog whatever the limits are: switch tcp_syncookies on"
	}
	limits.AcceptCount = least + 1 + n
	limits.MaxConnections = min(limits.MaxConnections, f.connections(limits.AcceptCount))
	return limits, ""
}

// withLimits is the same load on other limits, none of them clamped.
func (in Input) withLimits(l Limits) Input {
	in.Threads, in.MaxConnections, in.AcceptCount = l.Threads, l.MaxConnections, l.AcceptCount
	if l.Threads == 0 {
		in.Threads = -1
	}
	in.InForce = true
	return in
}
