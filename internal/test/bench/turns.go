package main

import (
	"math"
	"slices"
	"time"
)

// timed is one thing to be timed; it does its work n times.
type timed struct {
	name string
	do   func() error
}

// byTurns runs each in turn, rounds times, so that whatever else the machine
// does meets all of them alike, and returns each one's times in order of the
// rounds. batch calls are timed together, for what is too short for the clock.
func byTurns(rounds, batch int, all ...timed) ([][]time.Duration, error) {
	times := make([][]time.Duration, len(all))
	for range rounds {
		for i, t := range all {
			start := time.Now()
			for range batch {
				if err := t.do(); err != nil {
					return nil, &failure{t.name, err}
				}
			}
			times[i] = append(times[i], time.Since(start)/time.Duration(batch))
		}
	}
	return times, nil
}

// failure is a measurement that could not be taken.
type failure struct {
	what string
	err  error
}

func (f *failure) Error() string { return f.what + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// median leaves out what disturbed a few rounds only.
func median[T ~int64 | ~float64](list []T) T { return quantile(list, 0.5) }

// quantile is the value that the share q of the list does not exceed.
func quantile[T ~int64 | ~float64](list []T, q float64) T {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// ratio compares two things round by round and takes the median: what slows
// both of a round down does not show.
func ratio(ours, theirs []time.Duration) float64 {
	each := make([]float64, 0, len(ours))
	for i := range ours {
		if theirs[i] > 0 {
			each = append(each, float64(ours[i])/float64(theirs[i]))
		}
	}
	return median(each)
}

// usage is what a process has used of a processor at a time.
type usage struct{ at, used time.Duration }

// shareOfBursts is the share of a core of a process that works in bursts, each
// with the rest behind it that belongs to it: from the beginning of one burst to
// that of the last. A window cut anywhere would count a burst without its rest.
func shareOfBursts(series []usage) float64 {
	const work, rest = 3 * time.Millisecond, 300 * time.Millisecond
	var starts []usage
	busy := -rest
	for i := 1; i < len(series); i++ {
		if series[i].used-series[i-1].used < work {
			continue
		}
		if series[i-1].at-busy >= rest {
			starts = append(starts, series[i-1])
		}
		busy = series[i].at
	}
	if len(starts) < 2 { // no work to speak of
		starts = []usage{series[0], series[len(series)-1]}
	}
	first, last := starts[0], starts[len(starts)-1]
	return float64(last.used-first.used) / float64(last.at-first.at)
}

// turn is what one turn next to a loaded server saw.
type turn struct {
	agent int     // 0 for none
	rate  float64 // responses a second, by the server's own count
	share float64 // of a core, the agent's meanwhile
}

// control compares every other turn without an agent with the mean of the two
// nearest without one: it is 1 unless the noise is lopsided.
func control(turns []turn) []float64 {
	var without []turn
	for _, t := range turns {
		if t.agent == 0 {
			without = append(without, turn{agent: len(without) % 2, rate: t.rate})
		}
	}
	return besideNeighbours(without, 1)
}

// besideNeighbours compares each of the agent's turns with the mean of the turn
// before and the one after, which are without: a slow drift does not show.
func besideNeighbours(turns []turn, agent int) []float64 {
	var ratios []float64
	for i := 1; i < len(turns)-1; i++ {
		if turns[i].agent == agent {
			ratios = append(ratios, turns[i].rate/(turns[i-1].rate/2+turns[i+1].rate/2))
		}
	}
	return ratios
}

func valuesOf(turns []turn, agent int, what func(turn) float64) (list []float64) {
	for _, t := range turns {
		if t.agent == agent {
			list = append(list, what(t))
		}
	}
	return list
}

// bounds are what the true median lies above, and below, each at 95 %, for
// independent values of whatever distribution, however wild a few of them: each
// is below the median as a fair coin falls, so the n+1st smallest of all is above
// it only when n or fewer are below. Fewer than five values show nothing.
func bounds(list []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(list))
	n, chance := -1, 0.0
	for k := range sorted {
		if chance += fairCoin(len(sorted), k); chance > 0.05 {
			break
		}
		n = k
	}
	if n < 0 {
		return math.Inf(-1), math.Inf(1)
	}
	return sorted[n], sorted[len(sorted)-1-n]
}

// fairCoin is the chance of exactly k heads in n throws.
func fairCoin(n, k int) float64 {
	choose := lnFactorial(n) - lnFactorial(k) - lnFactorial(n-k)
	return math.Exp(choose - float64(n)*math.Ln2)
}

func lnFactorial(n int) float64 {
	ln, _ := math.Lgamma(float64(n + 1))
	return ln
}
