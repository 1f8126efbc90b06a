package predict

import (
	"math"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

const (
	// mostRequests bounds what a simulation takes: about a microsecond each.
	mostRequests = 12_000
	// mostSimulated bounds those of all simulations of a burst together.
	mostSimulated = 400_000
	// near is how far a simulation may be from what was measured, and allowed how many
	// clients it may be off where that is more.
	near    = .2
	allowed = 1
	// nearly is the distance of a simulation that may be right all the same.
	nearly = 2
	// usualPatience is how long many clients wait for an answer, where it is not known how long these do.
	usualPatience = 10 * time.Second
	// moments is at how many of a load that keeps coming it is looked at.
	moments = 60
)

// Load is one that gives what was measured.
type Load struct {
	plan.Input
	keepAlive *keepAlive // nothing is simulated of connections that are kept
	door      *door      // clients are turned away in front of a server that rests
	obstacle  *obstacle  // nothing that has a size keeps clients away
	ports     ports      // of outgoing connections, which find none
	files     *files     // the open files are what limits the connections
	cpus      float64    // the CPU time is what limits the threads, 0 where it does not
	steady    bool
	waits     bool // nobody has left yet: said of clients that wait as long as it takes
	off       float64
	// now is the share that is turned away, as measured; 0 where nobody is, and of a burst while some wait.
	now float64
	// others may be what was measured as well: with the least and the most patient clients that give it, too.
	others []plan.Input
	// ways are how a burst of the same clients may come the next time.
	ways []plan.Input
}

// fit is the load that gives best what was measured; ok is false where none does.
// The clients' patience is not measured: it is the one that gives as many turned away.
// Where several fit that differ in how many are turned away in all, and that is not measured, it is not known.
func (m *measured) fit() (best Load, ok bool) {
	in, ok := m.load()
	if !ok {
		return best, false
	}
	best.off = math.Inf(1)
	defer func() { best.files, best.cpus = m.files, m.cpus }()
	least, most := math.Inf(1), 0.
	var fits []plan.Input
	for _, in := range m.patiences(in) {
		p, err := plan.Simulate(in)
		if err != nil {
			continue
		}
		l := Load{Input: in, steady: m.steady, waits: m.steady && m.turnedAway == 0 || m.waits && pointAt(p, m.span).Lost == 0}
		if l.off = m.distance(p, &l); l.off < best.off || !m.steady && l.off == best.off { // who was not seen to leave is patient
			best = l
		}
		if l.off <= 1 {
			fits = append(fits, in)
			failed := l.failing(p)
			least, most = min(least, failed), max(most, failed)
		}
	}
	best.others, best.ways = likewise(fits, best.Input), m.mayCome(best)
	best.now = m.fraction()
	if best.off <= 1 && (m.steady && best.now > 0 || alike(least, most, near)) {
		return best, !best.waits || m.stalling == 0
	}
	return m.patient(in, best.off)
}

// fraction is how many are turned away: of those that keep coming, of whom that is decided, and of a burst of whom
// nobody tries to connect, or is inside, any more. Who was not let in and came with those that have left has, too.
func (m *measured) fraction() float64 {
	switch {
	case m.turnedAway == 0:
	case m.steady:
		return float64(m.turnedAway) / float64(m.turnedAway+m.finished)
	case m.unanswered && m.left == m.inside && m.trying == 0:
		return float64(m.offered-m.finished) / float64(m.offered)
	}
	return 0
}

// likewise are the first and the last of the loads that came in the same way as one: the least patient and the most.
func likewise(fits []plan.Input, as plan.Input) []plan.Input {
	same := slices.DeleteFunc(fits, func(in plan.Input) bool {
		return in.RoundTrip != as.RoundTrip || in.LateAcceptor != as.LateAcceptor
	})
	if n := len(same); n > 1 {
		return []plan.Input{same[0], same[n-1]}
	}
	return nil
}

// patient is the load of clients that wait as long as it takes, where nothing tells that any has
// left. When those who believe that they are connected find room depends on what was dropped of each.
func (m *measured) patient(in plan.Input, off float64) (l Load, ok bool) {
	p, err := plan.Simulate(in)
	if err != nil || !m.waits || m.stalling > 0 {
		return l, false
	}
	l = Load{Input: in, waits: true}
	l.off = m.distance(p, &l)
	return l, l.off <= min(1, off)
}

// ways are those in which the clients of a burst that are not all let in may come: who asks before the first has
// answered finds room in the queue, and may be dropped when it is full after all; who finds the queue full before the
// acceptor runs asks again, at the same moment as the others. Which it will be is chance, microseconds decide; but an
// acceptor that let in at once as many as there was room for was in time.
func (m *measured) ways(in plan.Input) []plan.Input {
	in.RoundTrip, in.LateAcceptor = 0, false
	if m.steady || !m.outside() {
		return []plan.Input{in}
	}
	apart, late := in, in
	apart.RoundTrip, late.LateAcceptor = time.Millisecond, true
	if m.roomLeft() {
		return []plan.Input{late, in, apart}
	}
	return []plan.Input{in, apart}
}

// came are the ways in which they may have come: one where it is known.
func (m *measured) came(in plan.Input) []plan.Input {
	ways := m.ways(in)
	if ways[0].LateAcceptor {
		return ways[:1]
	}
	return ways
}

// mayCome are the ways in which the same clients may come again: where the acceptor was in time those that nearly
// give what was measured.
func (m *measured) mayCome(l Load) (out []plan.Input) {
	for _, in := range m.ways(l.Input) {
		if p, err := plan.Simulate(in); m.roomLeft() || err == nil && m.distance(p, &l) <= nearly {
			out = append(out, in)
		}
	}
	return out
}

// roomLeft reports whether clients of a burst had to ask again although there was room for them, which is not for all.
func (m *measured) roomLeft() bool {
	room := m.limits.MaxConnections + m.limits.AcceptCount + 1
	return m.limits.MaxConnections >= 0 && m.offered > room && m.atOnce < room-allowed
}

// patiences are the load for each patience that its clients may have, the most patient last, and for
// each way in which they may have come.
func (m *measured) patiences(in plan.Input) (out []plan.Input) {
	for _, in.ConnectTimeout = range m.connectTimeouts() {
		for _, in.ClientTimeout = range m.readTimeouts() {
			out = append(out, m.came(in)...)
		}
	}
	if !m.steady && len(out)*in.Requests > mostSimulated {
		return nil
	}
	return out
}

// outside reports whether clients of a burst were not let in at once.
func (m *measured) outside() bool { return m.turnedAway+m.trying+m.stalling > 0 }

// connectTimeouts are those that people set, 0 for none. They matter only where somebody was not let in.
func (m *measured) connectTimeouts() []time.Duration {
	if !m.steady && !m.outside() {
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
	pairs := [][2]int{
		{now.Served - before.Served, m.finished},
		m.lost(now.Lost - before.Lost),
		m.within(now.InService + now.Waiting + now.AcceptQueue),
		{now.InService, m.busy},
	}
	if m.steady {
		pairs = append(pairs, m.waiting(started(&p.Input, now.T)-now.Served-now.Lost-now.Retrying))
	} else if m.trying+m.stalling > 0 {
		pairs = append(pairs, [2]int{now.HalfOpen, m.stalling})
	}
	for _, pair := range pairs {
		a, b := float64(pair[0]), float64(pair[1])
		off = max(off, math.Abs(a-b)/max(allowed, near*max(a, b)))
	}
	return off
}

// within compares how many are inside. Of a burst whose clients leave those are worked off who have left, and let in
// who were outside: which of them, and when, is chance.
func (m *measured) within(n int) [2]int {
	if m.steady || m.left == 0 {
		return [2]int{n, m.inside}
	}
	return [2]int{n, min(max(n, m.inside-m.left), m.inside+m.stalling+m.trying)}
}

// waiting compares how many wait inside: where some have left, those of the queue may have, too.
func (m *measured) waiting(n int) [2]int {
	least, most := m.inside-m.left, m.inside-m.left
	if m.unanswered {
		least -= m.queued
	}
	return [2]int{n, min(max(n, least), most)}
}

// lost compares how many have left: of a burst some of whom that is not known yet.
func (m *measured) lost(n int) [2]int {
	known, most := m.turnedAway, m.turnedAway
	if !m.steady {
		known, most = max(known, m.left), most+m.trying+m.stalling+m.left
	}
	return [2]int{n, min(max(n, known), most)}
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

// keepAlive are clients that keep their connections while they want nothing: how many are inside
// follows from their number, and no request has to be simulated.
type keepAlive struct {
	inside, outside int // accepted, and in front of that
	lost            bool
}

// countKeepAlive counts them where idle connections take all places, and no thread is waited for.
func countKeepAlive(l *model.Listener) (*keepAlive, bool) {
	v, n, q := &l.Verdict, l.Connections, l.AcceptQueue
	if n == nil || v.Cause != model.CauseKeepAliveIdle || q == nil || l.Losses == nil || n.Subset > 0 || l.Members > 1 || over(l) {
		return nil, false
	}
	for _, c := range v.Chain {
		if c == model.CauseMaxThreads {
			return nil, false
		}
	}
	k := &keepAlive{inside: n.Accepted, outside: q.Length, lost: l.Losses.DroppedPackets > 0}
	if c := l.Losses.Clients; c != nil {
		if c.PacketsLost > 0 || c.Untracked > 0 || c.Flood != nil {
			return nil, false
		}
		k.outside += c.Trying()
		k.lost = k.lost || c.TurnedAway() > 0
	}
	return k, k.inside > 0 && k.outside > 0
}

// effect is of a limit of the connections alone: one of the queue lets nobody further in.
func (k *keepAlive) effect(limit string, to int) string {
	all := k.inside + k.outside
	if limit != "max_connections" {
		return ""
	}
	who := phrase.Number(all) + " clients"
	if k.lost { // who was turned away may come again, or not
		who += " seen at once"
	}
	then := "all " + who + " are inside"
	if to < all {
		then = phrase.Number(to) + " of " + who + " are inside"
	}
	return "with " + phrase.Count(to, "connection") + " " + then + "; now " + phrase.Number(k.inside) + " are, and " + phrase.Number(k.outside) + " wait outside"
}
