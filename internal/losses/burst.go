package losses

import "time"

// burstLength is how long a burst is looked for: a client whose SYN was dropped
// comes again after a second at the earliest, and would count twice.
const burstLength = time.Second

// burst is the most packets that were dropped within a second, or from one
// checkpoint to the next where these are further apart.
func (l *ledger) burst(past []Checkpoint) (most uint64) {
	totals := make([]uint64, len(past))
	next, total := 0, uint64(0)
	for i, c := range past {
		for ; next < len(l.marks) && l.marks[next].checkpoint <= c.Number; next++ {
			total = l.marks[next].packets()
		}
		totals[i] = total
	}
	first := 0
	for i := range past {
		for first < i-1 && past[i].At.Sub(past[first].At) > burstLength {
			first++
		}
		most = max(most, totals[i]-totals[first])
	}
	return most
}
