package schedule

import (
	"sync"
	"time"
)

const (
	// cpuPart is the part of a core that everything together may take in the long
	// run, samples included.
	cpuPart = 0.02
	// leastCPUPart is what the readings have at least, however much everything else
	// takes.
	leastCPUPart = 0.004
	// capacity is how much CPU time may be saved up: the first seconds of trouble
	// are paid from it.
	capacity = 600 * time.Millisecond
	// reserve is kept for trouble: what is calm is read from what lies above it.
	reserve = 200 * time.Millisecond
)

// bucket is the CPU time that readings of connections and processes may spend. It fills with a share of a
// core less what everything else takes. Trouble may overdraw it; what is calm
// waits.
type bucket struct {
	mu     sync.Mutex
	level  time.Duration
	at     time.Time
	others time.Duration // by everything else, up to at
	spent  time.Duration // in all
}

func newBucket(now time.Time) *bucket { return &bucket{level: reserve, at: now} }

// fill takes the time that has passed, and the CPU time that everything else has
// used so far. It returns what is there for the calm.
func (b *bucket) fill(now time.Time, others time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	passed := max(0, now.Sub(b.at))
	gained := time.Duration(cpuPart*float64(passed)) - (others - b.others)
	gained = max(gained, time.Duration(leastCPUPart*float64(passed)))
	b.level = min(capacity, b.level+gained)
	b.at, b.others = now, others
	return b.level - reserve
}

// saving is how long it takes at least until that much more CPU time has been saved up.
func saving(lacking time.Duration) time.Duration {
	return time.Duration(float64(lacking) / cpuPart)
}

// spend takes CPU time out. The debt is bounded: trouble must not keep the calm
// waiting for minutes after it.
func (b *bucket) spend(cost time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.level = max(b.level-cost, -capacity)
	b.spent += cost
}

// total is what was taken out so far.
func (b *bucket) total() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}
