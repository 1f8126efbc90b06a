package observer

import (
	"sync"
	"time"
)

const (
	// share is the part of a core that everything together may take in the long
	// run, samples included.
	share = 0.02
	// leastShare is what the other clocks have at least, however much the samples
	// take.
	leastShare = 0.004
	// capacity is how much CPU time may be saved up: the first seconds of trouble
	// are paid from it.
	capacity = 600 * time.Millisecond
)

// bucket is the CPU time that the clocks may spend. It fills with a share of a
// core less what the samples take. Trouble may overdraw it; what is calm waits.
type bucket struct {
	mu      sync.Mutex
	level   time.Duration
	at      time.Time
	sampled time.Duration // by the samples, up to at
}

func newBucket(now time.Time) *bucket { return &bucket{level: capacity, at: now} }

// fill takes the time that has passed, and what the samples have taken so far.
func (b *bucket) fill(now time.Time, sampled time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	passed := max(0, now.Sub(b.at))
	gained := time.Duration(share*float64(passed)) - max(0, sampled-b.sampled)
	gained = max(gained, time.Duration(leastShare*float64(passed)))
	b.level = min(capacity, b.level+gained)
	b.at, b.sampled = now, sampled
	return b.level
}

// spend takes CPU time out. The debt is bounded: trouble must not keep the calm
// waiting for minutes after it.
func (b *bucket) spend(cost time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.level = max(b.level-cost, -capacity)
}
