package plan

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// InputError is an input that cannot be planned with. Name is the input's
// name as the command line spells it, without dashes.
type InputError struct {
	Name   string
	Value  string
	Remedy string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("--%s %s: %s", e.Name, e.Value, e.Remedy)
}

// Validate returns a *InputError for the first input that is wrong.
func (in Input) Validate() error {
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
			return &InputError{d.name, d.value.String(), "a time cannot be negative; 0 means none"}
		}
	}
	if in.RoundTrip > time.Second/2 {
		return &InputError{"round-trip", in.RoundTrip.String(), "must be 500ms or less: beyond that every SYN is repeated before its answer comes"}
	}
	if err := in.validateSpan(); err != nil {
		return err
	}
	return in.validateLimits()
}

func (in Input) validateLoad() error {
	rate := strconv.FormatFloat(in.Rate, 'g', -1, 64)
	switch {
	case math.IsNaN(in.Rate) || math.IsInf(in.Rate, 0) || in.Rate < 0:
		return &InputError{"rate", rate, "must be a number of clients per second, 0 or more"}
	case in.Duration < 0:
		return &InputError{"duration", in.Duration.String(), "a time cannot be negative"}
	case in.Duration > 0 && in.Rate == 0:
		return &InputError{"duration", in.Duration.String(), "goes with --rate; for a burst give --requests alone"}
	case in.Duration > 0 && in.Requests != 0:
		return &InputError{"requests", strconv.Itoa(in.Requests), "with --rate give either --requests or --duration, not both"}
	case in.Requests == 0 && in.Rate > 0 && in.Duration == 0:
		return &InputError{"rate", rate, "say for how long with --duration, or how many with --requests"}
	case in.Rate == 0 && in.Requests < 1:
		return &InputError{"requests", strconv.Itoa(in.Requests), "must be 1 or more (a burst), or give --rate and --duration"}
	case in.Requests < 0:
		return &InputError{"requests", strconv.Itoa(in.Requests), "must be 1 or more"}
	case in.Requests > MaxRequests:
		return &InputError{"requests", strconv.Itoa(in.Requests), "must be 1000000 or less; scale the load and the limits down by the same factor"}
	case in.Duration > 0 && in.withDefaults().Requests > MaxRequests:
		return &InputError{"duration", in.Duration.String(), "at rate " + rate + " makes more than 1000000 requests; shorten it"}
	case in.ServiceTime <= 0:
		return &InputError{"service-time", in.ServiceTime.String(), "must be more than 0: the time a thread works on one request, for example 250ms"}
	case in.ServiceTime > maxPlanTime:
		return &InputError{"service-time", in.ServiceTime.String(), "must be 24h or less"}
	}
	return nil
}

const (
	maxPlanTime = 24 * time.Hour
	// maxPlanSpan keeps the sums of times far from overflowing, which they do
	// after 292 years.
	maxPlanSpan = maxPlanYears * year
	// maxPlanYears is what validateSpan speaks of.
	maxPlanYears = 100
	year         = 365 * 24 * time.Hour
)

// validateSpan bounds the simulated time. The smallest limits may be a single
// thread, which then does all the work.
func (in Input) validateSpan() error {
	requests := in.withDefaults().Requests
	if work := float64(requests) * in.alone().Seconds(); work > maxPlanSpan.Seconds() {
		return &InputError{"service-time", in.ServiceTime.String(), fmt.Sprintf(
			"%d requests of that are %.0f years of work for one thread, a plan spans at most %d; scale the times down", requests, work/year.Seconds(), maxPlanYears)}
	}
	if in.Rate > 0 && float64(requests-1)/in.Rate > maxPlanSpan.Seconds() {
		return &InputError{"rate", strconv.FormatFloat(in.Rate, 'g', -1, 64), fmt.Sprintf(
			"%d requests come over more than %d years; give a higher rate", requests, maxPlanYears)}
	}
	return nil
}

func (in Input) validateLimits() error {
	switch {
	case in.BackendConnections < 0:
		return &InputError{"backend-connections", strconv.Itoa(in.BackendConnections), "must be 1 or more, or 0 for no backend"}
	case in.BackendConnections > 0 && in.BackendTime <= 0:
		return &InputError{"backend-time", in.BackendTime.String(), "must be more than 0 with --backend-connections: how long the backend takes to answer, for example 40ms"}
	case in.BackendTime != 0 && in.BackendConnections == 0:
		return &InputError{"backend-time", in.BackendTime.String(), "goes with --backend-connections, the size of the pool"}
	case in.BackendTime > maxPlanTime:
		return &InputError{"backend-time", in.BackendTime.String(), "must be 24h or less"}
	case in.Threads == 0:
		return &InputError{"max-threads", "0", "must be 1 or more, or -1 for no limit (virtual threads)"}
	case in.MaxConnections == 0:
		return &InputError{"max-connections", "0", "must be 1 or more, or -1 for no limit; Spring Boot ignores 0 and keeps 8192"}
	case in.AcceptCount < 1:
		return &InputError{"accept-count", strconv.Itoa(in.AcceptCount), "must be 1 or more; Tomcat ignores anything less and keeps 100"}
	case in.Somaxconn < 0:
		return &InputError{"somaxconn", strconv.Itoa(in.Somaxconn), "must be 1 or more; see sysctl net.core.somaxconn"}
	case in.MaxSynBacklog < 0:
		return &InputError{"max-syn-backlog", strconv.Itoa(in.MaxSynBacklog), "must be 1 or more; see sysctl net.ipv4.tcp_max_syn_backlog"}
	case in.SynRetries != "" && in.SynRetries != SynRetriesLinear && in.SynRetries != SynRetriesExponential:
		return &InputError{"syn-retries", string(in.SynRetries), "must be linear (Linux 6.5 and newer) or exponential"}
	}
	return nil
}
