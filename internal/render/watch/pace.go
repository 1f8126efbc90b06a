package watch

import "time"

// pace parts time into intervals. A snapshot that comes a little late begins no
// interval of its own between two others, and none is skipped.
type pace struct {
	interval time.Duration
	start    time.Time // of the present interval
}

// early is how much of an interval a snapshot may come before its time.
const early = 10 // per cent

// steps says how many intervals have passed since the present one began; it
// starts again with time t then. The first snapshot is in an interval of its own.
func (p *pace) steps(t time.Time) int {
	if p.start.IsZero() {
		p.start = t
		return 1
	}
	n := int((t.Sub(p.start) + p.interval*early/100) / p.interval)
	if n <= 0 {
		return 0
	}
	p.start = t
	return n
}
