package incident

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Point is one listener in one second.
type Point struct {
	At     int64 // Unix seconds
	Status model.Status
	Drops  uint32      // packets dropped since the point before; never clients
	Cause  model.Cause // of most of them
	Peak   int32       // highest sample of the accept queue since then
	Inside int32       // clients in the accept queue and accepted; -1: not known
}

// newPoint compares a listener with what was dropped by the snapshot before, nil
// where there is none.
func newPoint(at time.Time, l *model.Listener, before map[model.DropKey]uint64) Point {
	p := Point{At: at.Unix(), Status: l.Verdict.Status, Inside: -1}
	if before != nil {
		p.Drops, p.Cause = droppedSince(l.Totals.Dropped, before)
	}
	if q := l.AcceptQueue; q != nil {
		p.Peak = int32(max(q.Length, q.Recent))
		if l.Connections != nil && !l.Connections.Partial {
			p.Inside = int32(q.Length + l.Connections.Held())
		}
	}
	return p
}

// merge joins two snapshots within one second.
func (p Point) merge(later Point) Point {
	if p.Drops > later.Drops {
		later.Cause = p.Cause
	}
	later.Drops += p.Drops
	later.Peak = max(later.Peak, p.Peak)
	later.Status = max(later.Status, p.Status)
	return later
}

// droppedSince is how many packets were dropped, and the cause of most of them.
func droppedSince(now, before map[model.DropKey]uint64) (drops uint32, most model.Cause) {
	by := make(map[model.Cause]uint64)
	sum := uint64(0)
	for key, n := range now {
		if was := before[key]; n > was {
			by[key.Cause] += n - was
			sum += n - was
		}
	}
	for cause, n := range by {
		if n > by[most] || n == by[most] && cause < most {
			most = cause
		}
	}
	return uint32(min(sum, 1<<32-1)), most
}
