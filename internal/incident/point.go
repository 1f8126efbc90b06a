package incident

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Point is one listener in one second.
type Point struct {
	At     int64 // Unix seconds
	Status model.Status
	Drops  uint32 // packets dropped since the point before; never clients
	Peak   int32  // highest sample of the accept queue since then
	Inside int32  // clients in the accept queue and accepted; -1: not known
}

// newPoint compares a listener with the totals of the snapshot before.
func newPoint(at time.Time, l *model.Listener, dropped, before uint64) Point {
	p := Point{At: at.Unix(), Status: l.Verdict.Status, Inside: -1}
	if dropped > before {
		p.Drops = uint32(min(dropped-before, 1<<32-1))
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
	later.Drops += p.Drops
	later.Peak = max(later.Peak, p.Peak)
	later.Status = max(later.Status, p.Status)
	return later
}

// droppedTotal is the sum over causes since the agent started.
func droppedTotal(t *model.Totals) uint64 {
	var sum uint64
	for _, n := range t.Dropped {
		sum += n
	}
	return sum
}
