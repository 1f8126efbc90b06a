package recording

import (
	"math"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Point is one listener in one second.
type Point struct {
	At       int64 // Unix seconds
	Status   model.Status
	Drops    uint32      // packets dropped since the point before; never clients
	Cause    model.Cause // of most of them
	Peak     int32       // highest sample of the accept queue since then
	Inside   int32       // clients in the accept queue and accepted; -1: not known
	InFlight int32       // requests of its process that wait for a peer's answer; -1: not known
	Used     [NumStages]int8
	Clients  Rate
}

// Rate is what became of clients in one second. Whoever is turned away came some seconds
// before.
type Rate struct {
	Known                       bool // their handshakes were followed, also a second before
	Offered, Served, TurnedAway uint16
}

// NumStages are those whose use is kept by second, besides the accept queue.
const NumStages = 4

// Stages name what Point.Used holds: the percent of each limit in use, 100 only
// where it is full, -1 where it is not known.
func Stages() [NumStages]string {
	return [...]string{"max_connections", "max_threads", "open_files", "ephemeral_ports"}
}

// UnknownPoint is one of which nothing but the time is known.
func UnknownPoint(at int64) Point {
	p := Point{At: at, Inside: -1, InFlight: -1}
	for i := range p.Used {
		p.Used[i] = -1
	}
	return p
}

// NewPoint compares a listener with its totals in the snapshot before, nil where there is
// none.
func NewPoint(at time.Time, l *model.Listener, before *model.Totals) Point {
	p := UnknownPoint(at.Unix())
	p.Status = l.Verdict.Status
	if before != nil {
		p.Drops, p.Cause = droppedSince(l.Totals.Dropped, before.Dropped)
		p.Clients = rateSince(l.Totals.Clients, before.Clients)
	}
	if q := l.AcceptQueue; q != nil {
		p.Peak = int32(max(q.Length, q.Recent))
		if l.Connections != nil && !l.Connections.Partial {
			p.Inside = int32(q.Length + l.Connections.SlotsInUse())
		}
	}
	if l.Process != nil && l.Process.Downstream != nil {
		p.InFlight = inFlight(l.Process.Downstream)
	}
	names := Stages()
	for _, limit := range l.Limits {
		if i := slices.Index(names[:], limit.Name); i >= 0 {
			p.Used[i] = percent(limit)
		}
	}
	return p
}

// rateSince is how many clients came and ended; served are those that were let in where
// whether they had an answer is not known.
func rateSince(now, before *model.ClientTotals) Rate {
	if now == nil || before == nil {
		return Rate{}
	}
	came := now.Sub(*before)
	return Rate{
		Known: true, Offered: more(came.Came(), 0), Served: more(served(now), served(before)),
		TurnedAway: more(now.TurnedAway(), before.TurnedAway()),
	}
}

// WithRefused is the rate with clients that were refused, as nothing listened.
func (r Rate) WithRefused(n uint64) Rate {
	return r.add(Rate{Known: true, Offered: more(n, 0), TurnedAway: more(n, 0)})
}

func served(c *model.ClientTotals) uint64 {
	if c.Answers.Known {
		return c.Answers.Answered
	}
	return c.LetIn - min(c.LetIn, c.Answers.Unanswered)
}

// more is by how much a total grew, at most what a Rate holds.
func more(now, before uint64) uint16 {
	return uint16(min(max(now, before)-before, math.MaxUint16))
}

func (r Rate) add(other Rate) Rate {
	sum := func(a, b uint16) uint16 { return uint16(min(uint32(a)+uint32(b), math.MaxUint16)) }
	return Rate{r.Known || other.Known, sum(r.Offered, other.Offered), sum(r.Served, other.Served), sum(r.TurnedAway, other.TurnedAway)}
}

func inFlight(d *model.Downstream) int32 {
	sum := 0
	for i := range d.Peers {
		sum += d.Peers[i].InFlight
	}
	if d.Others != nil {
		sum += d.Others.InFlight
	}
	return int32(sum)
}

func percent(l model.Limit) int8 {
	if l.Max <= 0 {
		return -1
	}
	return int8(min(100, 100*int64(max(0, l.Used))/int64(l.Max)))
}

// Merge joins two snapshots within one second.
func (p Point) Merge(later Point) Point {
	if p.Drops > later.Drops {
		later.Cause = p.Cause
	}
	later.Drops += p.Drops
	later.Clients = later.Clients.add(p.Clients)
	later.Peak = max(later.Peak, p.Peak)
	later.Status = max(later.Status, p.Status)
	later.InFlight = max(later.InFlight, p.InFlight)
	for i, used := range p.Used {
		later.Used[i] = max(later.Used[i], used)
	}
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
