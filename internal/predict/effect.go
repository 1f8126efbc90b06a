package predict

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// Measure is the load of a listener, in a snapshot, that a simulation gives again; ok is
// false where requests per second are not known, and where it does not.
func Measure(l *model.Listener, s *model.Snapshot) (Load, bool) {
	if !changesLimit(&l.Verdict) {
		return Load{}, false
	}
	if k, ok := countKeepAlive(l); ok {
		return Load{keepAlive: k}, true
	}
	if d, ok := atTheDoor(l, s); ok {
		return Load{door: d}, true
	}
	if o, ok := inTheWay(l, s); ok {
		return Load{obstacle: o}, true
	}
	if p, ok := portsInTimeWait(l); ok {
		return Load{ports: p}, true
	}
	m, ok := measure(l, s)
	if !ok {
		return Load{}, false
	}
	return m.fit()
}

// Verdict adds to the steps of a listener's answer what each would do: the first alone, as what lowers a limit is, which is
// done instead; each other with those before it. The verdict given is not changed.
func (l *Load) Verdict(v model.Verdict) model.Verdict {
	so, done := l, 0 // the load with the steps before, and which of them was the latest, from 1
	return diagnosis.Effects(v, func(i int, s model.Step) (effect string) {
		if done > 0 && !s.Lowers() {
			effect = so.further(s, done)
		} else if effect = l.effect(s); !l.simulated() || s.Lowers() {
			return effect
		}
		if effect != "" {
			so, done = so.with(s), i+1
		}
		return effect
	})
}

// Snapshot is the same of all listeners of a snapshot, which is not changed.
func Snapshot(s *model.Snapshot) *model.Snapshot {
	out := *s
	out.Listeners = append([]model.Listener(nil), s.Listeners...)
	for i := range out.Listeners {
		l := &out.Listeners[i]
		if load, ok := Measure(l, s); ok {
			l.Verdict = load.Verdict(l.Verdict)
		}
	}
	return &out
}

func changesLimit(v *model.Verdict) bool {
	for _, s := range v.Answer.Do {
		if s.Limit != "" {
			return true
		}
	}
	return false
}

// simulated reports whether it is a load of the listener that is simulated: else a step's effect is counted, or is that
// of another stage.
func (l *Load) simulated() bool {
	return l.obstacle == nil && l.ports == 0 && l.keepAlive == nil && l.door == nil
}

// effect is what a step would do: "with 20 threads all are served, the slowest after 1.2
// s; now 34 of 60 are turned away".
func (l *Load) effect(s model.Step) string {
	to, err := value(s)
	switch {
	case l.obstacle != nil:
		return l.obstacle.effect(s.Limit)
	case l.ports > 0:
		return l.ports.effect(s.Limit)
	case err != nil:
		return ""
	case l.keepAlive != nil:
		return l.keepAlive.effect(s.Limit, int(to))
	case l.door != nil:
		return l.door.effect(s.Limit, int(to))
	}
	c, ok := l.compare(s.Limit, to)
	if !ok {
		return ""
	}
	now := l.outcome(c.before, "the slowest waits ")
	was, share := l.failing(c.before), l.fraction(c.before)
	if l.now > 0 { // it need not be simulated
		was, share = l.measured()
		now = share + " are turned away"
	}
	if c.failing > 0 && littleLess(c.failing, was) {
		return c.clients + "with " + c.what + " nearly as many are turned away as now: " + share
	}
	if c.then == "" || now == "" {
		return ""
	}
	what := c.what
	if s.Limit == reading.LimitConnectionPool {
		what += ", if as many are answered at once as fast,"
	}
	return c.clients + "with " + what + " " + c.then + "; now " + now
}

// further is what a step would do once those up to done, from 1, are.
func (l *Load) further(s model.Step, done int) string {
	to, err := value(s)
	if err != nil {
		return ""
	}
	c, ok := l.compare(s.Limit, to)
	switch {
	case !ok || c.then == "":
		return ""
	case c.failing == 0 && !l.growing(c.after) && l.servedAsSoon(c):
		return "not needed for this load once step " + strconv.Itoa(done) + " is done"
	case c.failing > 0 && littleLess(c.failing, l.failing(c.before)):
		return c.clients + "then with " + c.what + " nearly as many are still turned away"
	}
	return c.clients + "then with " + c.what + " " + c.then
}

// servedAsSoon reports whether all are served without the change, too, and about as soon.
func (l *Load) servedAsSoon(c comparison) bool {
	for _, in := range l.ways {
		if p, err := plan.Simulate(in); err != nil || p.Outcomes.Failed() > 0 {
			return false
		}
	}
	return l.failing(c.before) == 0 && !l.growing(c.before) && c.before.Latency != nil &&
		littleLess(c.after.Latency.Max.Seconds(), c.before.Latency.Max.Seconds())
}

// with is the load once a step is done.
func (l *Load) with(s model.Step) *Load {
	to, _ := value(s)
	out := *l
	out.now, out.others, out.ways = 0, slices.Clone(l.others), slices.Clone(l.ways)
	out.Input, _ = l.change(l.Input, s.Limit, to)
	for _, list := range [][]plan.Input{out.others, out.ways} {
		for i := range list {
			list[i], _ = l.change(list[i], s.Limit, to)
		}
	}
	return &out
}

func value(s model.Step) (float64, error) {
	return strconv.ParseFloat(strings.ReplaceAll(s.To, ",", ""), 64)
}

// comparison is how clients fare with a limit as it is and as it would be.
type comparison struct {
	before, after *plan.Plan
	clients       string // of whom it is said, "" of all
	what, then    string
	failing       float64
}

// compare simulates a change; ok is false where nothing is to be said of it.
func (l *Load) compare(limit string, to float64) (c comparison, ok bool) {
	changed, what := l.change(l.Input, limit, to)
	if what == "" {
		return c, false
	}
	before, err := plan.Simulate(l.Input)
	if err != nil {
		return c, false
	}
	after, err := plan.Simulate(changed)
	if err != nil || !l.agreed(after, limit, to) {
		return c, false
	}
	c = comparison{before: before, after: after, what: what}
	if l.waits || l.patienceDecides(changed, after) {
		c.clients = "for clients that wait: "
	}
	c.then, c.failing, ok = l.afterwards(after, limit, to)
	return c, ok
}

// patienceDecides reports whether others would be turned away, had clients who are inside the patience that many have.
// Theirs is not known while none of them has left without an answer.
func (l *Load) patienceDecides(changed plan.Input, after *plan.Plan) bool {
	if changed.ClientTimeout > 0 {
		return false
	}
	changed.ClientTimeout = usualPatience
	p, err := plan.Simulate(changed)
	return err != nil || !l.asManyFail(p, after)
}

// asManyFail reports whether two simulations turn away as many, or nearly.
func (l *Load) asManyFail(p, q *plan.Plan) bool {
	a, of := l.failed(p)
	b, all := l.failed(q)
	return math.Abs(float64(a)*float64(all)-float64(b)*float64(of)) <= near*float64(all)*float64(of)
}

// change is a load with another limit, and what that is called; "" where it is none that is simulated.
func (l *Load) change(in plan.Input, limit string, to float64) (changed plan.Input, what string) {
	n := int(to)
	switch {
	case limit == reading.LimitCPU && l.cpus > 0 && to > 0: // all that is done takes CPU time
		in.BackendTime, what = time.Duration(float64(in.BackendTime)*l.cpus/to), phrase.Decimal(to)+" "+map[bool]string{true: "CPU", false: "CPUs"}[to == 1]
	case l.cpus > 0: // more that wait for the same CPU
	case limit == reading.StageMaxThreads:
		in.Threads, what = n, phrase.Count(n, "thread")
	case limit == reading.StageMaxConnections:
		in.MaxConnections, what = n, phrase.Count(n, "connection")
	case limit == reading.StageAcceptQueue:
		in.AcceptCount, in.InForce, what = n, false, "a queue of "+phrase.Number(n+1)
	case limit == reading.LimitExecutorQueue && in.MaxQueue > 0:
		in.MaxQueue, what = n, "a queue of "+phrase.Number(n)+" in front of the threads"
	case limit == reading.StageOpenFiles && l.files != nil:
		in.MaxConnections, what = l.files.connections(n), phrase.Count(n, "open file")
	case limit == reading.LimitConnectionPool && in.BackendConnections > 0:
		in.BackendConnections, what = n, "a pool of "+phrase.Number(n)
	}
	return in, what
}

// afterwards is how clients fare with the change, and how many of them are turned away at most. How many of a burst are
// may depend on the way in which they come: it is from the fewest to the most, and not known where these are too far
// apart.
func (l *Load) afterwards(after *plan.Plan, limit string, to float64) (then string, failing float64, known bool) {
	least, most := after, after
	for _, in := range l.ways {
		in, _ = l.change(in, limit, to)
		p, err := plan.Simulate(in)
		if err != nil {
			return "", 0, false
		}
		if n := p.Outcomes.Failed(); n < least.Outcomes.Failed() {
			least = p
		} else if n > most.Outcomes.Failed() {
			most = p
		}
	}
	if l.steady || l.asManyFail(least, most) {
		return l.outcome(after, "all are served, the slowest after "), l.failing(after), true
	}
	from, _ := l.failed(least)
	n, all := l.failed(most)
	then = phrase.Number(from) + " to " + phrase.Number(n) + " of " + phrase.Number(all) + " are turned away"
	return then, float64(n), float64(n-from) <= 2*near*float64(all)
}

// agreed reports whether as many are turned away after the change whatever is not known of the
// clients' patience, where what was measured allows several.
func (l *Load) agreed(after *plan.Plan, limit string, to float64) bool {
	for _, in := range l.others {
		in, _ = l.change(in, limit, to)
		p, err := plan.Simulate(in)
		if err != nil {
			return false
		}
		if !l.asManyFail(p, after) {
			return false
		}
	}
	return true
}

// littleLess: a tenth less is nothing that a person would see.
func littleLess(share, was float64) bool { return share > .9*was }

// outcome is how clients fare: a number of those that came at once, a share of those that
// keep coming. Where a queue still grows at the end, it is by how much.
func (l *Load) outcome(p *plan.Plan, allServed string) string {
	failed, all := l.failed(p)
	switch {
	case p.Latency == nil, all == 0 && !l.growing(p):
		return ""
	case l.growing(p):
		return phrase.Decimal(l.growth(p)) + " a second more come than are served"
	case failed == 0 && l.cpus > 0: // how long one is kept from running is no matter of the simulation
		return "all are served"
	case failed == 0:
		return allServed + phrase.Seconds(p.Latency.Max)
	}
	return l.fraction(p) + " are turned away"
}

func (l *Load) fraction(p *plan.Plan) string {
	failed, all := l.failed(p)
	if l.steady {
		return phrase.Percent(float64(failed) / float64(all))
	}
	return phrase.Number(failed) + " of " + phrase.Number(all)
}

// failed are those of all clients that are turned away; where they keep coming, of the
// second half, when what a load begins with is over.
func (l *Load) failed(p *plan.Plan) (failed, all int) {
	if !l.steady {
		return p.Outcomes.Failed(), p.Input.Requests
	}
	half, end := pointAt(p, l.Duration/2), pointAt(p, l.Duration)
	failed = end.Lost - half.Lost
	return failed, failed + end.Served - half.Served
}

// measured is how many are turned away, in numbers as failing gives them and in words, where that is measured.
func (l *Load) measured() (failing float64, words string) {
	if l.steady {
		return 100 * l.now, phrase.Percent(l.now)
	}
	failing = l.now * float64(l.Requests)
	return failing, phrase.Number(int(math.Round(failing))) + " of " + phrase.Number(l.Requests)
}

// failing is how many are turned away as it is said: of those that keep coming a percentage.
func (l *Load) failing(p *plan.Plan) float64 {
	failed, all := l.failed(p)
	if l.steady {
		return 100 * float64(failed) / float64(max(1, all))
	}
	return float64(failed)
}

// growing: nobody is turned away of those that keep coming, and ever more wait.
func (l *Load) growing(p *plan.Plan) bool {
	failed, all := l.failed(p)
	return l.steady && failed == 0 && l.growth(p)*l.Duration.Seconds()/2 > max(1, float64(all)/20)
}

// growth is how many more come a second than end, in the second half.
func (l *Load) growth(p *plan.Plan) float64 {
	half, end := pointAt(p, l.Duration/2), pointAt(p, l.Duration)
	return float64(end.Waiting+end.AcceptQueue-half.Waiting-half.AcceptQueue) / (l.Duration.Seconds() / 2)
}
