package schedule

import (
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
)

const (
	// samplePart is the part of a core that the samples may take before those of calm
	// namespaces become fewer: one exact request is 1.3 to 7 µs, at 100 a second for
	// each namespace.
	samplePart = 0.01
	// fewerPart is what they must stay below with one turn fewer.
	fewerPart = 0.8 * samplePart
	// upkeepPart is what everything but the readings may take before the samples become
	// fewer as long as they are leastPart or more of it: the calm readings are paid from
	// what is left of share. idlePart is what it must stay below with one turn fewer.
	upkeepPart = 0.8 * cpuPart
	idlePart   = 0.7 * cpuPart
	leastPart  = 0.5 * samplePart
	// mostTurns is how many ticks a calm namespace waits for its sample at most. A
	// client that comes in between is seen that much later; none is lost, as the
	// kernel counts what it drops.
	mostTurns = 8
	// turnsWindow is how often it is decided again.
	turnsWindow = 2 * time.Second
	// measured is one tick of how many has its CPU time read, which takes two system
	// calls. It has no divisor that a number of turns has.
	measured = 7
)

// turns are the ticks at which calm namespaces are sampled, and what the samples
// cost. While all are calm the ticks that are nobody's turn are left out, and all are
// sampled together: a wake-up costs as much as the samples of some. It is for the goroutine that makes
// the samples, but for its atomics.
type turns struct {
	every  atomic.Int64 // ticks between two samples of a calm namespace, 0: not decided yet
	spent  atomic.Int64 // CPU time of all samples so far, in nanoseconds
	steps  int          // ticks from one sample to the next, 0: as 1
	tick   int
	weight int // measured ticks that this one stands for, 0: it is not measured
	start  time.Time
	before time.Duration // CPU time of the thread at start
	known  bool          // that is measured
	since  time.Time     // when the window began
	then   int64         // spent by then
	upkeep time.Duration // by then, of everything but the readings
}

// begin begins a tick.
func (t *turns) begin(now time.Time) {
	t.tick++
	t.start = now
	switch {
	case t.step() > 1:
		t.weight = 1
	case t.tick%measured == 0:
		t.weight = measured
	default:
		t.weight = 0
		return
	}
	t.before, t.known = cputime.Thread()
}

// step is how many ticks there are from one sample to the next.
func (t *turns) step() int { return max(t.steps, 1) }

// number is how many ticks are between two samples of a calm namespace.
func (t *turns) number() int { return int(max(t.every.Load(), 1)) }

// has reports whether this tick is the turn of a calm namespace, by its index.
func (t *turns) has(index int) bool {
	return t.step() > 1 || (t.tick+index)%t.number() == 0
}

// end ends a tick, after which all namespaces are calm or not. upkeep is the CPU time of
// everything but the readings so far, samples included.
func (t *turns) end(now time.Time, calm bool, upkeep func() time.Duration) {
	if t.weight > 0 {
		t.spent.Add(int64(t.weight) * int64(t.cost(now)))
	}
	if took := now.Sub(t.since); took >= turnsWindow {
		others := upkeep()
		if !t.since.IsZero() {
			t.decide(float64(t.spent.Load()-t.then)/float64(took), float64(others-t.upkeep)/float64(took))
		}
		t.since, t.then, t.upkeep = now, t.spent.Load(), others
	}
	t.steps = 1
	if calm {
		t.steps = t.number()
	}
}

// cost is the CPU time of a tick, or how long it took where that is not known: the
// thread's clock cannot be read, or the goroutine has changed threads.
func (t *turns) cost(now time.Time) time.Duration {
	took := now.Sub(t.start)
	if !t.known {
		return took
	}
	if after, _ := cputime.Thread(); after > t.before && after-t.before < took {
		return after - t.before
	}
	return took
}

// decide makes the turns fewer or more by the parts of a core that the samples took, and
// everything but the readings.
func (t *turns) decide(part, upkeep float64) {
	every := t.number()
	switch more := part / float64(max(every-1, 1)); { // with one turn fewer
	case part > samplePart, upkeep > upkeepPart && part > leastPart:
		every = min(every+1, mostTurns)
	case every > 1 && part+more < fewerPart && upkeep+more < idlePart:
		every--
	}
	t.every.Store(int64(every))
}

// total is the CPU time of all samples so far.
func (t *turns) total() time.Duration { return time.Duration(t.spent.Load()) }
