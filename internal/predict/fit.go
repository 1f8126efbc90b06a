package predict

import (
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/plan"
)

const (
	// mostRequests bounds what a simulation takes: about a microsecond each.
	mostRequests = 12_000
	// near is how far a simulation may be from what was measured, and allowed how many
	// clients it may be off where that is more.
	near    = .2
	allowed = 1
	// moments is at how many of a load that keeps coming it is looked at.
	moments = 60
)

// Load is one that gives what was measured.
type Load struct {
	plan.Input
	kept   *kept // nothing is simulated of connections that are kept
	steady bool
	waits  bool // nobody has left yet: said of clients that wait as long as it takes
	off    float64
	// others give what was measured, too, with clients of another patience; the zero value
	// where there are none.
	others [2]plan.Input
}

// fit is the load that gives best what was measured; ok is false where none does.
// The clients' patience is not measured: it is the one that gives as many turned away.
// Where several fit that differ in how many are turned away in all, it is not known.
func (m *measured) fit() (best Load, ok bool) {
	in, ok := m.load()
	if !ok {
		return best, false
	}
	best.off = math.Inf(1)
	least, most := math.Inf(1), 0.
	var others []plan.Input
	for _, in.ConnectTimeout = range m.connectTimeouts() {
		for _, in.ClientTimeout = range m.readTimeouts() {
			p, err := plan.Simulate(in)
			if err != nil {
				continue
			}
			l := Load{Input: in, steady: m.steady, waits: m.waits || m.steady && m.turnedAway == 0}
			if l.off = m.distance(p, &l); l.off < best.off {
				best = l
			}
			if l.off <= 1 {
				others = append(others, in)
				failed, _ := l.failed(p)
				least, most = min(least, float64(failed)), max(most, float64(failed))
			}
		}
	}
	if n := len(others); n > 1 { // the least patient and the most patient
		best.others = [2]plan.Input{others[0], others[n-1]}
	}
	return best, best.off <= 1 && alike(least, most, near)
}

// connectTimeouts are those that people set, 0 for none.
func (m *measured) connectTimeouts() []time.Duration {
	if m.waits {
		return []time.Duration{0}
	}
	const s = time.Second
	return []time.Duration{s / 2, 9 * s / 10, 3 * s / 2, 5 * s / 2, 7 * s / 2, 5 * s, 8 * s, 10 * s, 15 * s, 20 * s, 30 * s, 0}
}

// readTimeouts matter only where somebody left without an answer.
func (m *measured) readTimeouts() []time.Duration {
	if !m.unanswered {
		return []time.Duration{0}
	}
	const s = time.Second
	return []time.Duration{s, 2 * s, 3 * s, 5 * s, 8 * s, 10 * s, 12 * s, 15 * s, 20 * s, 30 * s, 60 * s}
}

// distance is the largest difference between a simulation and what was measured, 1 for
// the largest that is allowed.
func (m *measured) distance(p *plan.Plan, l *Load) float64 {
	if m.steady {
		return m.soonest(p, l.Duration)
	}
	return m.apart(p, pointAt(p, m.span), plan.Point{})
}

// soonest is the least distance at any moment of a load that keeps coming: for how long it has
// is not known, and what waits may grow all the time.
func (m *measured) soonest(p *plan.Plan, until time.Duration) float64 {
	off := math.Inf(1)
	for i := moments; i > 0; i-- {
		if t := until * time.Duration(i) / moments; t >= m.span {
			off = min(off, m.apart(p, pointAt(p, t), pointAt(p, t-m.span)))
		}
	}
	return off
}

// apart is the distance at one moment, from what was so a span before.
func (m *measured) apart(p *plan.Plan, now, before plan.Point) float64 {
	off := 0.
	for _, pair := range [][2]int{
		{now.Served - before.Served, m.finished},
		{now.Lost - before.Lost, m.turnedAway},
		{now.InService + now.Waiting + now.AcceptQueue, m.inside},
		{now.InService, m.busy},
		{started(&p.Input, now.T) - now.Served - now.Lost - now.Retrying, m.inside - m.gone},
	} {
		a, b := float64(pair[0]), float64(pair[1])
		off = max(off, math.Abs(a-b)/max(allowed, near*max(a, b)))
	}
	return off
}

// started is how many clients have come by then.
func started(in *plan.Input, t time.Duration) int {
	if in.Rate == 0 {
		return in.Requests
	}
	return min(in.Requests, int(in.Rate*t.Seconds())+1)
}

// alike reports whether two numbers differ by no more than a part of the larger, or one.
func alike(a, b, part float64) bool { return math.Abs(a-b) <= max(allowed, part*max(a, b)) }

// pointAt is the last point of a timeline that is not after t.
func pointAt(p *plan.Plan, t time.Duration) (out plan.Point) {
	for _, point := range p.Timeline {
		if point.T > t {
			break
		}
		out = point
	}
	return out
}
