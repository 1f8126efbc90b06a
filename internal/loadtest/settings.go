package loadtest

import (
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// Settings are the least limits that would have served a load, by simulation.
type Settings struct {
	Load        plan.Input   // what was simulated, with the limits in force
	Limits      *plan.Limits // nil: none serve it; Why says why not
	Why         string
	Twice       *plan.Limits // for twice the rate, or twice the clients of a burst
	WhyNotTwice string
}

const (
	// mostIdle is the share of idle connections up to which a connection is taken to carry one
	// request: with keep-alive PassiveOpens and handshakes do not count requests.
	mostIdle = 0.2
	// leastBusy is how many seconds with work in them the time in service is taken from.
	leastBusy = 3
	// burst: a load that came within this time was there at once.
	burst = 2 * time.Second
)

// newSettings simulates the run's own load. patience is how long a client may wait for its
// answer. The error says what is not known.
func (r *Result) newSettings(patience time.Duration, sysctl map[string]int) (*Settings, error) {
	in, err := r.load(patience)
	if err != nil {
		return nil, err
	}
	in.Syncookies, in.AbortOnOverflow = sysctl["tcp_syncookies"] != 0, sysctl["tcp_abort_on_overflow"] != 0
	in.Somaxconn, in.MaxSynBacklog = sysctl["somaxconn"], sysctl["tcp_max_syn_backlog"]
	s := &Settings{Load: in}
	p, err := plan.New(in)
	if err != nil {
		return nil, err
	}
	s.Limits, s.Why = p.Smallest, p.Why
	if in.Rate > 0 {
		in.Rate *= 2
	} else {
		in.Requests *= 2
	}
	if p, err = plan.New(in); err != nil {
		s.WhyNotTwice = err.Error()
		return s, nil //nolint:nilerr // twice the load is beyond what is simulated: no reason to keep the rest
	}
	s.Twice, s.WhyNotTwice = p.Smallest, p.Why
	return s, nil
}

// load is what the clients did and what the server had in force.
func (r *Result) load(patience time.Duration) (in plan.Input, err error) {
	l := &r.Latest
	c := l.Connector
	switch {
	case r.Clients == nil:
		return in, fmt.Errorf("how many clients came is not known without following their handshakes (CAP_NET_RAW)")
	case r.Clients.Offered == 0:
		return in, fmt.Errorf("no client came")
	case patience == 0:
		return in, fmt.Errorf("give --slo, the time that a client may wait for its answer")
	case c == nil || c.MaxThreads == nil || c.MaxConnections == nil || l.AcceptQueue == nil:
		return in, fmt.Errorf("the limits in force are not known (give --max-threads, --max-connections and --accept-count)")
	case c.TLS || c.HTTP2:
		return in, fmt.Errorf("the time in service is not seen of TLS and HTTP/2")
	}
	service, err := r.serviceTime()
	if err != nil {
		return in, err
	}
	in = plan.Input{
		ServiceTime: service, Threads: c.MaxThreads.Value, MaxConnections: c.MaxConnections.Value,
		AcceptCount: l.AcceptQueue.Limit, InForce: true, ClientTimeout: patience,
	}
	if l.OnVirtualThreads() {
		in.Threads = -1
	}
	rate, lasted := r.peakRate()
	if lasted <= burst {
		in.Requests = int(r.Clients.Offered)
		return in, nil
	}
	in.Rate, in.Duration = rate, lasted
	return in, nil
}

// serviceTime is the time in service of one request by Little's law: requests in service
// divided by the clients answered per second, over the seconds in which there were any.
func (r *Result) serviceTime() (time.Duration, error) {
	var busy, served, idle, accepted float64
	seconds := 0
	for i := range r.Points {
		p := &r.Points[i]
		if p.Busy < 0 || p.Busy == 0 && p.Served == 0 {
			continue
		}
		seconds++
		busy += float64(p.Busy) * r.Width.Seconds()
		served += float64(p.Answered)
		idle += float64(max(0, p.Idle))
		accepted += float64(max(0, p.Connections))
	}
	switch {
	case seconds < leastBusy || served < 1 || busy == 0:
		return 0, fmt.Errorf("the run was too short to know the time in service of a request")
	case accepted > 0 && idle/accepted > mostIdle:
		return 0, fmt.Errorf("requests are not counted on connections that are kept: %.0f %% of them were idle", 100*idle/accepted)
	}
	return time.Duration(busy / served * float64(time.Second)), nil
}

// peakRate is the highest rate of clients over kneeOver, and how long clients came.
func (r *Result) peakRate() (rate float64, lasted time.Duration) {
	n := int(max(kneeOver, r.Width) / r.Width)
	first := r.firstClient()
	for i := max(0, first); i < len(r.Points); i++ {
		if r.came(&r.Points[i]) > 0 {
			lasted = time.Duration(i+1-first) * r.Width
			rate = max(rate, r.rate(max(first, i+1-n), i))
		}
	}
	return rate, lasted
}

// InForce names the limits that were in force, as plan.Limits.
func (s *Settings) InForce() plan.Limits {
	return plan.Limits{Threads: max(0, s.Load.Threads), MaxConnections: s.Load.MaxConnections, AcceptCount: s.Load.AcceptCount}
}

// StatusOf is the worst of several results.
func StatusOf(results []*Result) (worst model.Status) {
	for _, r := range results {
		worst = max(worst, r.Status)
	}
	return worst
}
