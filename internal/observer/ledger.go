package observer

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// tally is what one listening address lost since the start: running totals.
type tally struct {
	dropped     map[model.DropKey]drops
	abandoned   uint64
	queueResets uint64
}

type drops struct {
	packets   uint64
	estimated uint64 // of packets, those split between several listeners
}

// ledger keeps a tally and enough of its past to tell what was lost since any
// of the last scans. A mark is made only when something was lost, so a quiet
// listener costs nothing.
type ledger struct {
	tally
	dirty bool
	marks []mark
}

type mark struct {
	scan int
	tally
}

func (l *ledger) drop(key model.DropKey, packets uint64, estimated bool) {
	if l.dropped == nil {
		l.dropped = make(map[model.DropKey]drops)
	}
	d := l.dropped[key]
	d.packets += packets
	if estimated {
		d.estimated += packets
	}
	l.dropped[key] = d
	l.dirty = true
}

func (l *ledger) abandon(n uint64) {
	l.abandoned += n
	l.dirty = l.dirty || n > 0
}

func (l *ledger) resetQueue(n uint64) {
	l.queueResets += n
	l.dirty = l.dirty || n > 0
}

// close ends a scan: what was lost up to now belongs to it. Marks older than
// the window's first scan are dropped, but for the last of them.
func (l *ledger) close(scan, oldest int) {
	if l.dirty {
		past := l.tally
		past.dropped = maps.Clone(l.dropped)
		l.marks = append(l.marks, mark{scan: scan, tally: past})
		l.dirty = false
	}
	first := 0
	for first+1 < len(l.marks) && l.marks[first+1].scan <= oldest {
		first++
	}
	l.marks = slices.Delete(l.marks, 0, first)
}

// since returns the losses after the given scan.
func (l *ledger) since(scan int) *model.Losses {
	var base tally
	for _, m := range l.marks {
		if m.scan <= scan {
			base = m.tally
		}
	}
	out := &model.Losses{
		AbandonedRequests: l.abandoned - base.abandoned,
		QueueResets:       l.queueResets - base.queueResets,
	}
	for key, d := range l.dropped {
		b := base.dropped[key]
		if n := d.packets - b.packets; n > 0 {
			out.By = append(out.By, model.Drops{DropKey: key, Packets: n, Estimated: d.estimated > b.estimated})
			out.DroppedPackets += n
		}
	}
	slices.SortFunc(out.By, func(a, b model.Drops) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Packet, b.Packet))
	})
	return out
}

// totals returns the running totals for the metrics.
func (l *ledger) totals() model.Totals {
	out := model.Totals{AbandonedRequests: l.abandoned, QueueResets: l.queueResets, Dropped: make(map[model.DropKey]uint64, len(l.dropped))}
	for key, d := range l.dropped {
		out.Dropped[key] = d.packets
	}
	return out
}
