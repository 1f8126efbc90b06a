package observer

import "time"

// gapSeconds is how long a gap between two samples is remembered.
const gapSeconds = 60

// gaps are the longest times between two samples, second by second. It allocates
// nothing.
type gaps [gapSeconds]struct {
	second  int64
	longest time.Duration
}

// add takes a gap that ended now.
func (g *gaps) add(now time.Time, gap time.Duration) {
	second := now.Unix()
	slot := &g[second%gapSeconds]
	if slot.second != second {
		slot.second, slot.longest = second, 0
	}
	slot.longest = max(slot.longest, gap)
}

// longest is the longest of the last minute.
func (g *gaps) longest(now time.Time) (longest time.Duration) {
	for _, slot := range g {
		if now.Unix()-slot.second < gapSeconds {
			longest = max(longest, slot.longest)
		}
	}
	return longest
}
