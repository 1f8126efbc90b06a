package agent

import (
	"os"
	"runtime"
	"time"
)

// Processors returns what is to be told the processor time of each scan. It
// keeps the program on one processor of Go's (GOMAXPROCS) as long as a scan is
// short beside the interval of the samples: with more of them, the timer of each
// sample wakes two threads where one would do, which costs more than the
// sample. While scans are long, samples run beside them on a second one, or
// they would be late.
//
// The environment's GOMAXPROCS is left as it is.
func Processors() func(scan, sampleInterval time.Duration) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func(time.Duration, time.Duration) {}
	}
	p := processors{several: min(2, runtime.GOMAXPROCS(0))}
	p.now = p.several
	runtime.GOMAXPROCS(p.several) // the first scan's length is not known
	return func(scan, sampleInterval time.Duration) {
		if before := p.now; p.after(scan, sampleInterval) != before {
			runtime.GOMAXPROCS(p.now)
		}
	}
}

// processors decides how many there are to be.
type processors struct {
	now, several int
}

// A scan may delay a sample by a fifth of its interval; to be called short again
// it must take half of that, so that the number does not change with each.
const (
	longScan  = 5
	shortScan = 2 * longScan
)

func (p *processors) after(scan, interval time.Duration) int {
	switch {
	case scan > interval/longScan:
		p.now = p.several
	case scan < interval/shortScan:
		p.now = 1
	}
	return p.now
}
