package plan

import (
	"math"
	"time"
)

// SynRetries is the rhythm in which a client's kernel repeats a SYN that
// nobody answered.
type SynRetries string

// The two rhythms of Linux.
const (
	// SynRetriesLinear: 1, 2, 3, 4, 5, 7, 11, 19, 35, 67 s after the first SYN
	// (Linux >= 6.5: net.ipv4.tcp_syn_linear_timeouts = 4).
	SynRetriesLinear SynRetries = "linear"
	// SynRetriesExponential: 1, 3, 7, 15, 31, 63 s.
	SynRetriesExponential SynRetries = "exponential"
)

// MaxRequests bounds the memory that a plan takes (about 100 bytes a request).
const MaxRequests = 1_000_000

// Input is the load and the limits of a plan. Each request comes on a
// connection of its own; there is no keep-alive.
type Input struct {
	// Requests is the number of clients. They all come at once, or at Rate.
	Requests int
	// Rate is the number of clients per second of an open-loop load, which
	// does not slow down when the server does. 0: all come at once.
	Rate float64
	// Together is how many of those that come at Rate come at the same moment, one where it is 0: then so
	// many come, and nobody until the rate is kept again.
	Together int
	// Duration is how long clients keep coming; 0 with Rate: until Requests
	// have come. Give one of the two.
	Duration time.Duration

	// ServiceTime is how long a thread works on one request; with a backend, what
	// the thread itself needs, before it calls the backend.
	ServiceTime time.Duration
	// Linger is how long its connection keeps its place afterwards, while it is closed.
	Linger time.Duration
	// BackendConnections is the size of the pool of connections to a backend that
	// each request calls once, holding its thread meanwhile; 0: no backend.
	BackendConnections int
	BackendTime        time.Duration // how long the backend takes to answer

	Threads        int // maxThreads; < 0: no limit, each request has a virtual thread
	MaxQueue       int // requests that may wait for a thread, those beyond are rejected; 0: no limit
	MaxConnections int // maxConnections; < 0: no limit
	AcceptCount    int // acceptCount, before the kernel clamps it to Somaxconn
	// InForce: AcceptCount is the Send-Q of a server that runs. Somaxconn as it
	// is now clamps the next listen(), not that one.
	InForce bool

	// ClientTimeout is how long a client waits for its response; 0: for ever.
	// It runs from the first SYN, as in k6, curl -m and Go's http.Client.
	ClientTimeout time.Duration
	// TimeoutFromConnect lets ClientTimeout run from the established
	// connection instead, as read timeouts do in Java and Python.
	TimeoutFromConnect bool
	// ConnectTimeout is how long a client waits for its connection; 0: until
	// its kernel gives up (ETIMEDOUT after 131 s linear, 127 s exponential).
	ConnectTimeout time.Duration

	SynRetries      SynRetries // "": linear
	Syncookies      bool       // net.ipv4.tcp_syncookies = 1
	AbortOnOverflow bool       // net.ipv4.tcp_abort_on_overflow = 1
	Somaxconn       int        // net.core.somaxconn; 0: 4096, the default since Linux 5.4
	MaxSynBacklog   int        // net.ipv4.tcp_max_syn_backlog, counts only without syncookies; 0: 4096
	// SmallSynQueue: the server's kernel lets one half-open connection fewer wait, as
	// all did before 2025 (docs/results/kernels.md: "SYN queue holds").
	SmallSynQueue bool

	// RoundTrip is the time to the server and back. With 0 (one host) a
	// client's handshake is over before the next client begins its own.
	RoundTrip time.Duration
	// LateAcceptor: clients that come at the same moment all meet the accept queue before accept() is
	// called, as where the acceptor has to be woken. Else it takes each at once.
	LateAcceptor bool
}

// alone is how long a request takes that never waits.
func (in *Input) alone() time.Duration {
	if in.BackendConnections == 0 {
		return in.ServiceTime
	}
	return in.ServiceTime + in.BackendTime
}

// Backlog is what listen() makes of AcceptCount: Send-Q of the listener.
func (in *Input) Backlog() int {
	if in.InForce {
		return in.AcceptCount
	}
	return min(in.AcceptCount, in.Somaxconn)
}

// capacity is the number of clients that can be inside at once: one more than
// the two limits, because sk_acceptq_is_full compares with ">". ok is false
// when maxConnections has no limit.
func (in *Input) capacity() (n int, ok bool) {
	return in.MaxConnections + in.Backlog() + 1, in.MaxConnections >= 0
}

// withDefaults fills in what was left out and counts the requests of a load
// that is given as rate and duration.
func (in Input) withDefaults() Input {
	if in.SynRetries == "" {
		in.SynRetries = SynRetriesLinear
	}
	if in.Somaxconn == 0 {
		in.Somaxconn = 4096
	}
	if in.MaxSynBacklog == 0 {
		in.MaxSynBacklog = 4096
	}
	if in.Rate > 0 && in.Duration > 0 {
		n := math.Ceil(min(in.Rate*in.Duration.Seconds(), MaxRequests+1) - 1e-9)
		in.Requests = max(1, int(n)) // the first comes at once
	}
	return in
}

// startOf is when client i sends its first SYN.
func (in *Input) startOf(i int) time.Duration {
	if in.Rate == 0 {
		return 0
	}
	if in.Together > 1 {
		i -= i % in.Together
	}
	return time.Duration(float64(i) / in.Rate * float64(time.Second))
}
