package connections

import (
	"math"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Subset says which of a listener's connections a reading asked for.
type Subset struct {
	Known int // those that the latest walk found
	Asked int // of them, chosen at random
	New   int // have come since at most
}

// quantile is that of the normal distribution for an error that holds in 99 % of all
// readings for each of five numbers at once (1 − 0.01/5, two-sided): no more of them
// can be near the largest error.
const quantile = 3.09

// Whole reports whether all connections were asked for.
func (s Subset) Whole() bool { return s.Asked == s.Known && s.New == 0 }

// all is how many of all connections n of those that were asked for stand for.
func (s Subset) all(n int) int { return (n*s.Known + s.Asked/2) / max(1, s.Asked) }

// error is how far the estimate n of a number may be from it: the interval of Agresti and
// Coull (1998) for a share, in a finite population.
func (s Subset) error(n int) int {
	if s.Asked == s.Known {
		return s.New
	}
	known, asked, z2 := float64(s.Known), float64(s.Asked), quantile*quantile
	share := float64(n) / known
	middle := (share*asked + z2/2) / (asked + z2)
	width := quantile * math.Sqrt(middle*(1-middle)/(asked+z2)*(known-asked)/(known-1))
	return s.New + int(math.Ceil(known*(width+math.Abs(middle-share))))
}

// Estimate has the connections that were asked for stand for all of the listener's.
// Sums stay sums. It precedes Finish.
func (f *Found) Estimate(s Subset) {
	if f.states[sockdiag.TimeWait] = 0; s.Whole() { // what has ended is not asked for
		return
	}
	c := &f.Counts
	c.Subset, f.subset = s.Asked, s
	c.Unacknowledged, c.Left, c.Repeating = s.all(c.Unacknowledged), s.all(c.Left), s.all(c.Repeating)
	idle := [...]int{c.MaybeBusy, c.Phases[model.Idle] - c.Silent - c.MaybeBusy}
	closed := [...]int{c.Abandoned, c.ClosedIdle, c.Phases[model.ClientClosed] - c.Abandoned - c.ClosedIdle}
	open := [...]int{f.states[sockdiag.Established], f.states[sockdiag.CloseWait]}
	for i, n := range f.states {
		f.states[i] = s.all(n)
	}
	c.Accepted, f.SynBacklog, f.Queued = s.all(c.Accepted), s.all(f.SynBacklog), s.all(f.Queued)
	f.QueuedLeft, f.Probes = s.all(f.QueuedLeft), s.all(f.Probes)
	divide(c.Accepted, open[:])
	f.states[sockdiag.Established], f.states[sockdiag.CloseWait] = open[0], open[1]
	divide(c.Accepted, c.Phases[:])
	ages := [...]int{c.Silent, idle[0] + idle[1]}
	divide(c.Phases[model.Idle], ages[:])
	c.Silent = ages[0]
	divide(ages[1], f.quiet[:])
	divide(ages[1], idle[:])
	c.MaybeBusy = idle[0]
	divide(c.Phases[model.ClientClosed], closed[:])
	c.Abandoned, c.ClosedIdle = closed[0], closed[1]
	for i, n := range f.remotes.counts { // which are lower bounds
		f.remotes.counts[i] = max(0, s.all(n)-s.error(s.all(n)))
	}
}

// state says on which part the counts stand, and how far they may be from the truth.
func (s Subset) state(c *model.Connections) {
	if c.Subset == 0 {
		return
	}
	for _, n := range append(c.Phases[:], c.Accepted, c.Silent, c.Abandoned, c.ClosedIdle, c.Recent, c.MaybeBusy, c.Outlived) {
		c.Error = max(c.Error, s.error(n))
	}
}

type count interface{ int | uint32 }

func sum[N count](parts []N) (all int) {
	for _, n := range parts {
		all += int(n)
	}
	return all
}

// divide divides a total by the ratio of the parts, whose sum it then is.
func divide[N count](total int, parts []N) {
	all, before, given := sum(parts), 0, 0
	if all == 0 {
		return
	}
	for i, n := range parts {
		before += int(n)
		next := (before*total + all/2) / all
		parts[i] = N(next - given)
		given = next
	}
}

// quiet counts idle connections by the time since their last data in either direction,
// in steps of quietStep; the last element has all that are older.
type quiet [64]uint32

const quietStep = 2 * time.Second

func (q *quiet) add(age time.Duration) {
	q[max(0, min(int(age/quietStep), len(q)-1))]++
}

// recent are those that had data within the last step.
func (q *quiet) recent() int { return int(q[0]) }

// keepAliveSlack is how much later than keepAliveTimeout Tomcat may end a connection: its
// poller looks once a second (NioEndpoint.Poller.timeout), on a busy machine later.
const keepAliveSlack = 3 * time.Second

// outlived moves the idle connections that have been quiet for longer than
// keepAliveTimeout to Unclassified: a connection between two requests would have been
// ended. Without a timeout that is known, or with a long one, nothing is said.
func (q *quiet) outlived(c *model.Connections, connector *model.Connector) {
	timeout := keepAliveTimeout(connector)
	if timeout <= 0 {
		return
	}
	first := int((timeout+keepAliveSlack)/quietStep) + 1
	if first >= len(q) {
		return
	}
	for _, n := range q[first:] {
		c.Outlived += int(n)
	}
	c.Phases[model.Idle] -= c.Outlived
	c.Phases[model.Unclassified] += c.Outlived
}

// keepAliveTimeout is that of the connector; 0 where it is not known for certain, and for
// AJP, whose connections a proxy keeps for ever unless a timeout is set (AbstractAjpProtocol).
func keepAliveTimeout(connector *model.Connector) time.Duration {
	if connector == nil || connector.TLS || connector.HTTP2 || strings.HasPrefix(connector.Protocol, "ajp") {
		return 0
	}
	timeout := connector.KeepAlive()
	if timeout == nil || timeout.Uncertain {
		return 0
	}
	return timeout.Value
}
