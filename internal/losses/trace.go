package losses

import (
	"math"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// maxRuns is two and a half seconds of a queue that changes with every sample.
const maxRuns = 256

// trace is how the queue went lately. The fast loop writes it, and
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
	if changed {
		t.begin(at, 0)
	}
	t.to = at
}

// drop takes dropped packets, after the sample of the same tick.
func (t *trace) drop(at time.Time, packets uint64) {
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
		t.halve()
	}
	t.runs = append(t.runs, model.QueueRun{At: at.Sub(t.from), Length: t.length, Dropped: dropped})
}

func (t *trace) halve() {
	for i := range len(t.runs) / 2 {
		a, b := t.runs[2*i], t.runs[2*i+1]
		t.runs[i] = model.QueueRun{
			At: a.At, Length: max(a.Length, b.Length),
			Dropped: a.Dropped + min(b.Dropped, math.MaxUint32-a.Dropped),
		}
	}
	t.runs = t.runs[:len(t.runs)/2]
}

// keep is how much of what was taken is kept for the next time: a reader that misses
// one of two snapshots has all the samples of both.
const keep = time.Second

// take returns what was seen since it was last called, and some time before; nil
// where nothing was.
func (t *trace) take() *model.QueueSamples {
	if len(t.runs) == 0 {
		return nil
	}
	out := &model.QueueSamples{From: t.from, To: t.to, Runs: slices.Clone(t.runs)}
	t.forget(t.to.Add(-keep).Sub(t.from))
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
