package losses

import (
	"math"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// maxRuns is two and a half seconds of a queue that changes with every sample.
const maxRuns = 256

// trace is how the queue went lately, in the order of time. The fast loop writes it, and
// allocates only where there are more runs than ever before. Beyond maxRuns every two runs become one, with the longer
// queue and the drops of both.
type trace struct {
	from, to time.Time
	length   uint32 // by the latest sample
	runs     []model.QueueRun
}

func (t *trace) observe(at time.Time, length uint32) {
	changed := length != t.length || len(t.runs) == 0
	t.length = length
	at = t.reached(at)
	if changed {
		t.begin(at, 0)
	}
	t.to = at
}

// reached is a moment that is not before what was seen last: who reads the counters may have waited for
// samples that are later than when it began.
func (t *trace) reached(at time.Time) time.Time {
	if at.Before(t.to) {
		return t.to
	}
	return at
}

// drop takes dropped packets, after the sample of the same tick.
func (t *trace) drop(at time.Time, packets uint64) {
	at = t.reached(at)
	n := uint32(min(packets, math.MaxUint32))
	if last := len(t.runs) - 1; last >= 0 && t.from.Add(t.runs[last].At).Equal(at) {
		t.runs[last].Dropped += min(n, math.MaxUint32-t.runs[last].Dropped)
		return
	}
	t.begin(at, n)
	t.to = at
}

func (t *trace) begin(at time.Time, dropped uint32) {
	switch len(t.runs) {
	case 0:
		t.from = at
	case maxRuns:
		t.runs = model.Halved(t.runs)
	}
	t.runs = append(t.runs, model.QueueRun{At: at.Sub(t.from), Length: t.length, Dropped: dropped})
}

// overlap is how much of what was taken is kept for the next time: a reader that misses
// one of two snapshots has all the samples of both.
const overlap = time.Second

// take returns what was seen since it was last called, and some time before; nil
// where nothing was.
func (t *trace) take() *model.QueueSamples {
	if len(t.runs) == 0 {
		return nil
	}
	out := &model.QueueSamples{From: t.from, To: t.to, Runs: slices.Clone(t.runs)}
	t.forget(t.to.Add(-overlap).Sub(t.from))
	return out
}

// forget drops the runs that ended before a moment.
func (t *trace) forget(before time.Duration) {
	first := 0
	for first+1 < len(t.runs) && t.runs[first+1].At <= before {
		first++
	}
	base := t.runs[first].At
	t.runs = append(t.runs[:0], t.runs[first:]...)
	t.from = t.from.Add(base)
	for i := range t.runs {
		t.runs[i].At -= base
	}
}

// peaks remembers the highest queue length of each of the last 60 slices of
// the window, in a fixed array: the fast loop writes it without allocating.
type peaks struct {
	slice  time.Duration // window / 60
	bins   [60]peak
	recent uint32 // the highest since takeRecent
}

type peak struct {
	at     int64 // number of the slice, 0 = never written
	length uint32
	when   time.Time
}

func newPeaks(window time.Duration) peaks {
	return peaks{slice: max(window/60, time.Millisecond)}
}

func (p *peaks) observe(now time.Time, length uint32) {
	p.recent = max(p.recent, length)
	at := now.UnixNano() / int64(p.slice)
	bin := &p.bins[at%int64(len(p.bins))]
	if bin.at != at || length >= bin.length {
		*bin = peak{at: at, length: length, when: now}
	}
}

// takeRecent returns the highest sample since it was last called.
func (p *peaks) takeRecent() int {
	recent := p.recent
	p.recent = 0
	return int(recent)
}

// highest returns the latest of the highest samples in the window that ends now.
func (p *peaks) highest(now time.Time) (length int, when time.Time, ok bool) {
	oldest := now.UnixNano()/int64(p.slice) - int64(len(p.bins))
	for i := range p.bins {
		b := &p.bins[i]
		if b.at <= oldest || b.at == 0 {
			continue
		}
		if !ok || int(b.length) > length || (int(b.length) == length && b.when.After(when)) {
			length, when, ok = int(b.length), b.when, true
		}
	}
	return length, when, ok
}
