package evidence

import "time"

const (
	// turnsFrom is how many walks, how many of them with others held than in the one before, and
	// which time show that connections are taken only as others end.
	turnsFrom  = 4
	turnsOther = 2
	turnsFor   = 500 * time.Millisecond
	// turnsApart is the least time between two readings that are of different walks.
	turnsApart = 50 * time.Millisecond
)

// turnover is a time in which clients wait, and each walk finds as many connections held as the
// one before, and others: each has taken the slot of one that ended. That is what a connection
// latch looks like from outside (LimitLatch.countUpOrAwait), whoever may read the acceptor. It
// needs no limit to be known. Where workers accept, the same is so because all of these are busy.
type turnover struct {
	slots   int
	walks   int // that found as many
	fewer   int // that found some fewer: slots that were free for a moment
	others  int // of walks, those that found others than the walk before
	running int // in which the acceptor ran, or waited for a CPU
	since   time.Time
	walked  time.Time // the latest walk
	set     uint64    // of it
}

// take takes a reading in, and the nearest walk.
func (t *turnover) take(r *Reading, p *Phases) {
	if !r.Queued.Known || r.Queued.V == 0 || r.Stopped.V || p.Partial || !p.Walked || p.Age > roomAge || p.ByWorkers {
		*t = turnover{}
		return
	}
	at := r.Began.Add(-p.Age)
	if t.walks > 0 && at.Sub(t.walked) < turnsApart {
		return
	}
	switch {
	case t.walks > 0 && p.SlotsInUse == t.slots:
		t.walks++
		if p.Set != t.set {
			t.others++
		}
	case t.walks > 0 && p.SlotsInUse < t.slots && t.slots-p.SlotsInUse <= max(1, t.slots/10):
		t.fewer++
	default:
		*t = turnover{slots: p.SlotsInUse, walks: 1, since: at}
	}
	if r.Acceptor.Activity == Runnable {
		t.running++
	}
	t.walked, t.set = at, p.Set
}

// shown: that often, that long, and not because the acceptor lacked a CPU.
func (t *turnover) shown() bool {
	return t.slots > 0 && t.walks >= turnsFrom && t.walks > t.fewer && 3*t.running < t.walks+t.fewer &&
		t.walked.Sub(t.since) >= turnsFor && t.others >= turnsOther
}

// begun: more walks may show it.
func (t *turnover) begun() bool { return t.others > 0 && !t.shown() }

// TurnsOver reports whether connections are taken only as others end.
func (m *Moment) TurnsOver() bool { return m.turns.shown() }
