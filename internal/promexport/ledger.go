package promexport

import (
	"maps"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// causeCounts are the packets dropped of one listener, or of all, by cause.
type causeCounts map[model.Cause]uint64

func countsOf(dropped map[model.DropKey]uint64) causeCounts {
	var out causeCounts
	for key, n := range dropped {
		if n == 0 {
			continue
		}
		if out == nil {
			out = make(causeCounts)
		}
		out[key.Cause] += n
	}
	return out
}

// dropLedger adds up what was dropped at all listeners. Their counters go with them, and a
// counter that falls is one that began again to Prometheus: what is gone stays in the sum.
type dropLedger struct {
	mu      sync.Mutex
	at      time.Time // of the snapshot of latest
	latest  map[address]causeCounts
	retired causeCounts
}

func newDropLedger() *dropLedger { return &dropLedger{retired: make(causeCounts)} }

// add takes the counters of a snapshot and returns the sums, those of every cause that is foreseen.
// An earlier snapshot than the latest, of another scrape at the same time, is the latest.
func (d *dropLedger) add(at time.Time, now map[address]causeCounts) causeCounts {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at.Before(d.at) {
		now = d.latest
	}
	for a, before := range d.latest {
		for cause, n := range before {
			if now[a][cause] < n { // the listener is gone, or its counters began again
				d.retired[cause] += n
			}
		}
	}
	d.latest, d.at = now, later(d.at, at)
	sum := make(causeCounts)
	for _, cause := range model.DropCauses() {
		sum[cause] = 0
	}
	maps.Copy(sum, d.retired)
	for _, counts := range now {
		for cause, n := range counts {
			sum[cause] += n
		}
	}
	return sum
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
