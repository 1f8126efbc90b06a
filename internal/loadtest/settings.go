package loadtest

import (
	"fmt"
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// Settings are the least limits that would have served a load, by simulation, or where connections
// are kept by counting them.
type Settings struct {
	Load        plan.Input   // what was simulated, with the limits in force
	Limits      *plan.Limits // nil: none serve it; Why says why not
	Why         string
	Twice       *plan.Limits // for twice the rate, or twice the clients of a burst
	WhyNotTwice string
	Counted     bool // connections are kept: nothing was simulated
	Supposed    bool // Load.ClientTimeout is not from --slo
}

const (
	// mostIdle is the share of idle connections up to which a connection is taken to carry one
	// request: with keep-alive PassiveOpens and handshakes do not count requests.
	mostIdle = 0.2
	// leastBusy is how many seconds with work in them the time in service is taken from.
	leastBusy = 3
	// burst: a load that came within this time was there at once.
	burst = 2 * time.Second
	// spare is what settings have in hand: the rate of a load varies, and with it the least that
	// serves it.
	spare = 1.1
	// pause is how long a server may stop accepting, for its garbage collection or as another process has
	// its turn: the accept queue has room for those who come meanwhile.
	pause = 250 * time.Millisecond
	// mostSimulated bounds the clients of a simulation: it is run some dozens of times.
	mostSimulated = 20_000
)

// newSettings simulates the run's own load. slo is how long a client may wait for its
// answer, 0 where that is not said. The error says what is not known.
func (r *Result) newSettings(slo time.Duration, sysctl map[string]int) (*Settings, error) {
	if err := r.simulated(); err != nil {
		return nil, err
	}
	if r.kept() {
		return r.counted()
	}
	in, err := r.load(slo)
	if err != nil {
		return nil, err
	}
	in.Syncookies, in.AbortOnOverflow = sysctl["tcp_syncookies"] != 0, sysctl["tcp_abort_on_overflow"] != 0
	in.Somaxconn, in.MaxSynBacklog = sysctl["somaxconn"], sysctl["tcp_max_syn_backlog"]
	s := &Settings{Load: in, Supposed: slo == 0}
	p, err := plan.New(in)
	if err != nil {
		return nil, err
	}
	s.Limits, s.Why = p.Smallest, p.Why
	absorb(s.Limits, &in)
	if r.Lost() && s.suffices() {
		return nil, fmt.Errorf("the limits in force serve this load in the simulation, and did not in the run")
	}
	if in.Rate > 0 {
		in.Rate *= 2
	} else {
		in.Requests *= 2
		if s.Supposed {
			in.ClientTimeout = 2*in.ClientTimeout - in.ServiceTime
		}
	}
	if p, err = plan.New(in); err != nil {
		s.WhyNotTwice = err.Error()
		return s, nil //nolint:nilerr // twice the load is beyond what is simulated: no reason to leave out the rest
	}
	s.Twice, s.WhyNotTwice = p.Smallest, p.Why
	absorb(s.Twice, &in)
	return s, nil
}

// simulated reports what is missing for it.
func (r *Result) simulated() error {
	c := r.Latest.Connector
	switch r.Cause {
	case model.CauseNone, model.CauseMaxThreads, model.CauseMaxConnections, model.CauseAcceptQueue, model.CauseKeepAliveIdle, model.CauseBacklogClamped:
	default:
		if r.Status >= model.StatusSaturated {
			return fmt.Errorf("%s is what turned clients away or made them wait: no limit of the connector changes that", r.Cause)
		}
	}
	switch {
	case r.Clients == nil:
		return fmt.Errorf("how many clients came is not known without following their handshakes (CAP_NET_RAW)")
	case r.Cause == model.CauseNone && r.Clients.TurnedAway > 0:
		return fmt.Errorf("why clients were turned away is not known")
	case r.Clients.Offered == 0:
		return fmt.Errorf("no client came")
	case c == nil || c.MaxThreads == nil || c.MaxConnections == nil || r.Latest.AcceptQueue == nil:
		return fmt.Errorf("the limits in force are not known (give --max-threads, --max-connections and --accept-count)")
	case c.TLS || c.HTTP2:
		return fmt.Errorf("the time in service is not seen of TLS and HTTP/2")
	}
	return nil
}

// counted are the settings for connections that are kept: each client holds one, whether it has
// a request or not, and as many threads as there were requests at once serve them all.
func (r *Result) counted() (*Settings, error) {
	l := &r.Latest
	s := &Settings{Counted: true, Load: plan.Input{Threads: l.Connector.MaxThreads.Value, MaxConnections: l.Connector.MaxConnections.Value, AcceptCount: l.AcceptQueue.Limit, InForce: true}}
	clients, requests := 0, 0
	for i := range r.Points {
		p := &r.Points[i]
		if p.Connections < 0 {
			continue
		}
		clients = max(clients, p.Connections+p.Queue)
		requests = max(requests, p.Waiting+p.Busy)
	}
	if clients == 0 {
		return nil, fmt.Errorf("the connections were not counted")
	}
	clients += int(r.Clients.TurnedAway) // of whom each may be one that came again
	s.Limits = &plan.Limits{Threads: max(1, requests), MaxConnections: clients, AcceptCount: l.AcceptQueue.Limit}
	s.Twice = &plan.Limits{Threads: 2 * s.Limits.Threads, MaxConnections: 2 * clients, AcceptCount: l.AcceptQueue.Limit}
	if l.OnVirtualThreads() {
		s.Limits.Threads, s.Twice.Threads, s.Load.Threads = 0, 0, -1
	}
	return s, nil
}

// load is what the clients did and what the server had in force.
func (r *Result) load(slo time.Duration) (in plan.Input, err error) {
	service, err := r.serviceTime()
	if err != nil {
		return in, err
	}
	l := &r.Latest
	in = plan.Input{
		ServiceTime: service, Threads: l.Connector.MaxThreads.Value, MaxConnections: l.Connector.MaxConnections.Value,
		AcceptCount: l.AcceptQueue.Limit, InForce: true, ClientTimeout: slo,
	}
	if l.OnVirtualThreads() {
		in.Threads = -1
	}
	rate, lasted := r.peakRate()
	if lasted <= burst {
		in.Requests = int(r.Clients.Offered)
		if slo == 0 && in.Threads > 0 { // as long as the threads in force take for all of them
			rounds := (in.Requests + in.Threads - 1) / in.Threads
			in.ClientTimeout = time.Duration(rounds)*service + service/2
		}
		return in, nil
	}
	if slo == 0 {
		in.ClientTimeout = 2 * service // nobody waits longer than a request takes
	}
	in.Rate = rate * spare
	in.Duration = max(time.Second, min(lasted, time.Duration(mostSimulated/in.Rate*float64(time.Second))))
	return in, nil
}

// serviceTime is the time in service of one request by Little's law: requests in service
// divided by the clients answered per second, from the first client to the last that was
// answered. What was in service is the mean of the seconds in which that was read.
func (r *Result) serviceTime() (time.Duration, error) {
	first, last := max(0, r.firstClient()), -1
	var busy, read, answered float64
	for i := first; i < len(r.Points); i++ {
		if p := &r.Points[i]; p.Answered > 0 {
			last, answered = i, answered+float64(p.Answered)
		}
	}
	for i := first; i <= last; i++ {
		if p := &r.Points[i]; p.Fresh {
			busy, read = busy+float64(p.Busy), read+1
		}
	}
	if read < leastBusy || busy == 0 {
		return 0, fmt.Errorf("the run was too short to know the time in service of a request")
	}
	span := float64(last+1-first) * r.Width.Seconds()
	return time.Duration(math.Round(busy/read*span/answered*1e6)) * time.Microsecond, nil
}

// absorb has the accept queue take what comes while nothing is accepted, whatever the simulation has of the
// pace of both: of a burst all, which may have come before the server accepts the first, of clients that
// keep coming those of a pause.
func absorb(l *plan.Limits, in *plan.Input) {
	most := in.Requests - 1
	if in.Rate > 0 {
		most = int(math.Ceil(in.Rate * pause.Seconds()))
	}
	if in.Somaxconn > 0 {
		most = min(most, in.Somaxconn)
	}
	if l != nil {
		l.AcceptCount = max(l.AcceptCount, most)
	}
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
