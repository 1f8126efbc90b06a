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
	// its turn: the accept queue has room for those who come meanwhile. It is longer, up to longestPause,
	// where the run's own snapshots were late by more.
	pause        = 250 * time.Millisecond
	longestPause = time.Second
	// slowOver is over how long a server may be slower than it is on average: queues have no room for
	// what comes meanwhile. slowRounds is how many requests each thread ends in that time at least: requests
	// that began together end together, and nobody is answered in between.
	slowOver   = 3 * time.Second
	slowRounds = 4
	// leastEnded is how many requests have to end, and at least one for each in service: of fewer the time that
	// one takes is not known, unless none began before the run or ended after it.
	leastEnded = 10
	// mostSimulated bounds the clients of a simulation: it is run some dozens of times.
	mostSimulated = 20_000
)

// newSettings simulates the run's own load. slo is how long a client may wait for its
// answer, 0 where that is not said. The error says what is not known.
func (r *Result) newSettings(slo time.Duration, sysctl map[string]int) (*Settings, error) {
	if err := r.simulated(); err != nil {
		return nil, err
	}
	if r.keepAlive() {
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
	r.absorb(s.Limits, &in)
	if r.Lost() && s.suffices() {
		return nil, fmt.Errorf("the limits in force serve this load in the simulation, and did not in the run")
	}
	if in.Rate > 0 {
		in.Rate *= 2
	} else {
		in.Requests *= 2
		if s.Supposed && r.patience == 0 {
			in.ClientTimeout = 2*in.ClientTimeout - in.ServiceTime
		}
	}
	if p, err = plan.New(in); err != nil {
		s.WhyNotTwice = err.Error()
		return s, nil //nolint:nilerr // twice the load is beyond what is simulated: no reason to leave out the rest
	}
	s.Twice, s.WhyNotTwice = p.Smallest, p.Why
	r.absorb(s.Twice, &in)
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
	t, err := r.times()
	if err != nil {
		return in, err
	}
	l := &r.Latest
	in = plan.Input{
		ServiceTime: t.service, Linger: t.linger, Threads: l.Connector.MaxThreads.Value, MaxConnections: l.Connector.MaxConnections.Value,
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
			in.ClientTimeout = time.Duration(rounds)*t.service + t.service/2
		}
		if slo == 0 && r.patience > 0 && (in.ClientTimeout == 0 || r.patience < in.ClientTimeout) {
			in.ClientTimeout = r.patience
		}
		return in, nil
	}
	in.ServiceTime, in.Linger = t.slow(t.service), t.slow(t.linger)
	if slo == 0 {
		in.ClientTimeout = 2 * in.ServiceTime // nobody waits longer than a request takes
	}
	in.Rate = rate * spare
	in.Duration = max(time.Second, min(lasted, time.Duration(mostSimulated/in.Rate*float64(time.Second))))
	return in, nil
}

// waitedAtMost is how long those can have waited who left without an answer: all had left when the
// command ended. 0 where nobody left, or it has not ended.
func (r *Result) waitedAtMost(ended time.Duration) time.Duration {
	first := r.firstClient()
	if r.Clients == nil || ended == 0 || first < 0 {
		return 0
	}
	if o := &r.Clients.Outcomes; o[model.ClientGaveUp]+o[model.ClientStalled]+r.Clients.Answers.Unanswered == 0 {
		return 0
	}
	return max(0, ended-r.begin(first))
}

// times are how long a request has a thread, and its connection a place of those that maxConnections
// allows.
type times struct {
	service  time.Duration
	linger   time.Duration // a connection is held, and no request of it has a thread or waits for one
	slowness float64       // how many times as long it takes while the server is slowest
}

func (t *times) slow(d time.Duration) time.Duration {
	return time.Duration(float64(d) * t.slowness).Round(time.Microsecond)
}

// times are those of one request by Little's law: requests in service, and connections that are held,
// divided by the clients answered a second, from the first client to the last that was answered. What was
// in service is the mean of the seconds in which that was read; while a limit was full all the time it is
// that limit.
func (r *Result) times() (t times, err error) {
	first, last := max(0, r.firstClient()), -1
	var all little
	for i := first; i < len(r.Points); i++ {
		if r.Points[i].Answered > 0 {
			last = i
		}
	}
	for i := first; i <= last; i++ {
		all.add(r.Course, i)
	}
	switch {
	case all.read < leastBusy || all.busy == 0:
		return t, fmt.Errorf("the run was too short to know the time in service of a request")
	case !all.known() && !r.complete(first):
		return t, fmt.Errorf("how long a request takes is not known: of %.0f in service at a time only %.0f ended", math.Ceil(all.busy/all.read), all.answered)
	}
	service, occupied := all.times()
	var full little
	for i := first + 1; i <= last; i++ {
		if r.busy(i) {
			full.add(r.Course, i)
		}
	}
	if full.read >= leastBusy && (full.known() || r.complete(first)) { // fewer readings, and none of them missed what is shorter than the time between
		s, h := full.times()
		service, occupied = max(service, s), max(occupied, h)
	}
	return times{service: service, linger: max(0, occupied-service), slowness: r.slowness(first, last, max(slowOver, slowRounds*service))}, nil
}

// complete reports whether all requests that were in service from the first client on began and ended in the run, each with
// an answer: what they took together is known then, however few they are.
func (r *Result) complete(first int) bool {
	l, c := &r.Latest, r.Clients
	if c == nil || c.Open > 0 || r.Abandoned > 0 || c.Answers.Answered == 0 || c.Answers.Unanswered+c.Answers.Unclear > 0 {
		return false
	}
	return (first == 0 || r.Points[first-1].Busy <= 0) && l.Connections != nil && !l.Connections.Partial && l.Connections.Phases[model.InService] == 0
}

// little sums what was inside, and what came out of it.
type little struct {
	busy, inside, read float64 // of readings
	answered, span     float64
}

func (y *little) add(c *Course, i int) {
	p := &c.Points[i]
	if p.Down {
		return
	}
	y.answered, y.span = y.answered+float64(p.Answered), y.span+c.span(i, i).Seconds()
	if p.Fresh {
		y.busy, y.inside, y.read = y.busy+float64(p.Busy), y.inside+float64(p.Connections-p.Waiting), y.read+1
	}
}

// known reports whether as many requests ended as tell the time of one.
func (y *little) known() bool { return y.answered >= max(leastEnded, y.busy/y.read) }

func (y *little) times() (service, occupied time.Duration) {
	of := func(sum float64) time.Duration {
		return time.Duration(math.Round(sum/y.read*y.span/y.answered*1e6)) * time.Microsecond
	}
	return of(y.busy), of(y.inside)
}

// slowness is how many times as many are answered on average as over the slowest time that is as long as
// long, while a limit was full. Who is answered at the end of one point may be counted in the next.
func (r *Result) slowness(first, last int, long time.Duration) float64 {
	var answered, least float64
	var span time.Duration
	for i := first + 1; i <= last; i++ {
		if !r.busy(i) {
			continue
		}
		answered, span = answered+float64(r.Points[i].Answered), span+r.span(i, i)
		from, sum := i, 0.
		for from > first+1 && r.busy(from-1) && r.span(from, i) < long {
			from--
		}
		if r.span(from, i) < long {
			continue
		}
		for _, p := range r.Points[from : i+1] {
			sum += float64(p.Answered)
		}
		if pace := over(sum, r.span(from, i)); pace > 0 && (least == 0 || pace < least) {
			least = pace
		}
	}
	if least == 0 {
		return 1
	}
	return max(1, over(answered, span)/least)
}

// absorb has the accept queue take what comes while nothing is accepted, whatever the simulation has of the
// pace of both: of a burst all, which may have come before the server accepts the first, of clients that
// keep coming those of a pause.
func (r *Result) absorb(l *plan.Limits, in *plan.Input) {
	most := in.Requests - 1
	if in.Rate > 0 {
		most = int(math.Ceil(in.Rate * r.longestPause().Seconds()))
	}
	if in.Somaxconn > 0 {
		most = min(most, in.Somaxconn)
	}
	if l != nil {
		l.AcceptCount = max(l.AcceptCount, most)
	}
}

// longestPause is by how much a snapshot was late.
func (r *Result) longestPause() time.Duration {
	longest := pause
	for i := 1; i < len(r.Points); i++ {
		longest = max(longest, r.span(i, i)-r.Width)
	}
	return min(longest, longestPause)
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
