package diagnosis

import (
	"fmt"
	"math"
	"strconv"
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

// MaxPlanRequests bounds the memory that a plan takes (about 100 bytes a request).
const MaxPlanRequests = 1_000_000

// PlanInput is the load and the limits of a plan. Each request comes on a
// connection of its own; there is no keep-alive.
type PlanInput struct {
	// Requests is the number of clients. They all come at once, or at Rate.
	Requests int
	// Rate is the number of clients per second of an open-loop load, which
	// does not slow down when the server does. 0: all come at once.
	Rate float64
	// Duration is how long clients keep coming; 0 with Rate: until Requests
	// have come. Give one of the two.
	Duration time.Duration

	ServiceTime    time.Duration // how long a thread works on one request
	Threads        int           // maxThreads
	MaxConnections int           // maxConnections; < 0: no limit
	AcceptCount    int           // acceptCount, before the kernel clamps it to Somaxconn

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

	// RoundTrip is the time to the server and back. With 0 (one host) a
	// client's handshake is over before the next client begins its own.
	RoundTrip time.Duration
}

// PlanInputError is an input that cannot be planned with. Name is the input's
// name as the command line spells it, without dashes.
type PlanInputError struct {
	Name   string
	Value  string
	Remedy string
}

func (e *PlanInputError) Error() string {
	return fmt.Sprintf("--%s %s: %s", e.Name, e.Value, e.Remedy)
}

// Backlog is what listen() makes of AcceptCount: Send-Q of the listener.
func (in *PlanInput) Backlog() int { return min(in.AcceptCount, in.Somaxconn) }

// capacity is the number of clients that can be inside at once: one more than
// the two limits, because sk_acceptq_is_full compares with ">". ok is false
// when maxConnections has no limit.
func (in *PlanInput) capacity() (n int, ok bool) {
	return in.MaxConnections + in.Backlog() + 1, in.MaxConnections >= 0
}

// withDefaults fills in what was left out and counts the requests of a load
// that is given as rate and duration.
func (in PlanInput) withDefaults() PlanInput {
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
		in.Requests = int(math.Ceil(min(in.Rate*in.Duration.Seconds(), MaxPlanRequests+1) - 1e-9))
	}
	return in
}

// startOf is when client i sends its first SYN.
func (in *PlanInput) startOf(i int) time.Duration {
	if in.Rate == 0 {
		return 0
	}
	return time.Duration(float64(i) / in.Rate * float64(time.Second))
}

// Validate returns a *PlanInputError for the first input that is wrong.
func (in PlanInput) Validate() error {
	if err := in.validateLoad(); err != nil {
		return err
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"client-timeout", in.ClientTimeout},
		{"connect-timeout", in.ConnectTimeout},
		{"round-trip", in.RoundTrip},
	} {
		if d.value < 0 {
			return &PlanInputError{d.name, d.value.String(), "a time cannot be negative; 0 means none"}
		}
	}
	if in.RoundTrip > time.Second/2 {
		return &PlanInputError{"round-trip", in.RoundTrip.String(), "must be 500ms or less: beyond that every SYN is repeated before its answer comes"}
	}
	return in.validateLimits()
}

func (in PlanInput) validateLoad() error {
	rate := strconv.FormatFloat(in.Rate, 'g', -1, 64)
	switch {
	case math.IsNaN(in.Rate) || math.IsInf(in.Rate, 0) || in.Rate < 0:
		return &PlanInputError{"rate", rate, "must be a number of clients per second, 0 or more"}
	case in.Duration < 0:
		return &PlanInputError{"duration", in.Duration.String(), "a time cannot be negative"}
	case in.Duration > 0 && in.Rate == 0:
		return &PlanInputError{"duration", in.Duration.String(), "goes with --rate; for a burst give --requests alone"}
	case in.Duration > 0 && in.Requests != 0:
		return &PlanInputError{"requests", strconv.Itoa(in.Requests), "with --rate give either --requests or --duration, not both"}
	case in.Requests == 0 && in.Rate > 0 && in.Duration == 0:
		return &PlanInputError{"rate", rate, "say for how long with --duration, or how many with --requests"}
	case in.Rate == 0 && in.Requests < 1:
		return &PlanInputError{"requests", strconv.Itoa(in.Requests), "must be 1 or more (a burst), or give --rate and --duration"}
	case in.Requests < 0:
		return &PlanInputError{"requests", strconv.Itoa(in.Requests), "must be 1 or more"}
	case in.Requests > MaxPlanRequests:
		return &PlanInputError{"requests", strconv.Itoa(in.Requests), "must be 1000000 or less; scale the load and the limits down by the same factor"}
	case in.Duration > 0 && in.withDefaults().Requests > MaxPlanRequests:
		return &PlanInputError{"duration", in.Duration.String(), "at rate " + rate + " makes more than 1000000 requests; shorten it"}
	case in.ServiceTime <= 0:
		return &PlanInputError{"service-time", in.ServiceTime.String(), "must be more than 0: the time a thread works on one request, for example 250ms"}
	case in.ServiceTime > maxPlanTime:
		return &PlanInputError{"service-time", in.ServiceTime.String(), "must be 24h or less"}
	}
	return nil
}

// maxPlanTime keeps the sums of times far from overflowing.
const maxPlanTime = 24 * time.Hour

func (in PlanInput) validateLimits() error {
	switch {
	case in.Threads < 1:
		return &PlanInputError{"threads", strconv.Itoa(in.Threads), "must be 1 or more; with virtual threads there is no limit: give the value of --max-connections"}
	case in.MaxConnections == 0:
		return &PlanInputError{"max-connections", "0", "must be 1 or more, or -1 for no limit; Spring Boot ignores 0 and keeps 8192"}
	case in.AcceptCount < 1:
		return &PlanInputError{"accept-count", strconv.Itoa(in.AcceptCount), "must be 1 or more; Tomcat ignores anything less and keeps 100"}
	case in.Somaxconn < 0:
		return &PlanInputError{"somaxconn", strconv.Itoa(in.Somaxconn), "must be 1 or more; see sysctl net.core.somaxconn"}
	case in.MaxSynBacklog < 0:
		return &PlanInputError{"max-syn-backlog", strconv.Itoa(in.MaxSynBacklog), "must be 1 or more; see sysctl net.ipv4.tcp_max_syn_backlog"}
	case in.SynRetries != "" && in.SynRetries != SynRetriesLinear && in.SynRetries != SynRetriesExponential:
		return &PlanInputError{"syn-retries", string(in.SynRetries), "must be linear (Linux 6.5 and newer) or exponential"}
	}
	return nil
}
