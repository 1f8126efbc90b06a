package reading

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// throttling is what a CPU limit did between two snapshots.
type throttling struct {
	throttled, periods uint64
	// withheld is the part of the CPU time that the process wanted: the kernel
	// adds up for how long each CPU's run queue was throttled with something to
	// run in it, the rest of what was wanted is the time used. The sum alone is
	// no share of anything: 16 CPUs that are throttled for a thirtieth of the time
	// make half a second in each.
	Withheld float64
}

// Throttling is the zero value where it is not known, or the limit did nothing.
func (p Pair) Throttling() throttling {
	periods, ok1 := grown(p, func(p *model.Process) *uint64 { return p.CPUPeriods })
	throttled, ok2 := grown(p, func(p *model.Process) *uint64 { return p.CPUPeriodsThrottled })
	withheld, ok3 := p.total(cpuThrottled)
	used, ok4 := p.total(CPUUsed)
	if !ok1 || !ok2 || !ok3 || !ok4 || periods == 0 || withheld == 0 {
		return throttling{}
	}
	return throttling{
		// Two limits one above the other may both throttle in a period.
		throttled: min(throttled, periods), periods: periods,
		Withheld: withheld.Seconds() / (withheld + used).Seconds(),
	}
}

// Fraction is how much of the time the limit counts for: a single period in which
// it withholds nearly everything is as little as a little in each.
func (t throttling) Fraction() float64 {
	if t.periods == 0 {
		return 0
	}
	return min(t.Withheld, float64(t.throttled)/float64(t.periods))
}

func (t throttling) String() string {
	return phrase.Sprintf("the CPU limit throttled the process in %d of %s and withheld %s of the CPU time it wanted",
		t.throttled, phrase.Count(t.periods, "period"), phrase.Percent(t.Withheld))
}
