package losses

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// dropTotals holds the totals that one listening address lost since the start.
type dropTotals struct {
	dropped     map[model.DropKey]drops
	late        map[model.DropKey]uint64 // packets of dropped, of clients that were turned away before
	pending     uint64                   // dropped packets that have no cause yet
	abandoned   uint64
	queueResets uint64
	bySocket    uint64 // by how much the counter of its own socket moved, see SocketDrops
}

type drops struct {
	packets   uint64
	estimated uint64         // of packets, those split between several listeners
	evidence  model.Evidence // of the latest of them
}

// ledger keeps a tally and enough of its history to say what was lost since any
// checkpoint of the window. A mark is made only when something was lost, so a
// quiet listener costs nothing.
type ledger struct {
	dropTotals
	waiting []pending
	number  int // of the latest checkpoint
	dirty   bool
	marks   []mark
}

// mark is the tally at a checkpoint.
type mark struct {
	checkpoint int
	dropTotals
}

// settled books packets of which the cause is known, dropped after the given
// checkpoint. The marks made since had them without their cause.
func (l *ledger) settled(key model.DropKey, d drops, after int) {
	l.add(key, d)
	for i := range l.marks {
		if m := &l.marks[i]; m.checkpoint > after && m.pending >= d.packets {
			m.pending -= d.packets
			m.add(key, d)
		}
	}
	l.dirty = true
}

func (t *dropTotals) add(key model.DropKey, d drops) {
	if t.dropped == nil {
		t.dropped = make(map[model.DropKey]drops)
	}
	sum := t.dropped[key]
	sum.packets += d.packets
	sum.estimated += d.estimated
	sum.evidence = cmp.Or(d.evidence, sum.evidence)
	t.dropped[key] = sum
}

// packets are all that were dropped, whether or not the cause is known.
func (t *dropTotals) packets() uint64 {
	n := t.pending
	for _, d := range t.dropped {
		n += d.packets
	}
	return n
}

// abandon books requests that were given up before the checkpoint that followed the given one,
// and of which that is known only now: what was lost since a later one has none of them.
func (l *ledger) abandon(n uint64, after int) {
	if n == 0 {
		return
	}
	l.abandoned += n
	if after >= l.number {
		l.dirty = true
		return
	}
	i := 0 // of the first mark that has them
	for i < len(l.marks) && l.marks[i].checkpoint <= after {
		i++
	}
	if i == len(l.marks) || l.marks[i].checkpoint > after+1 {
		m := mark{checkpoint: after + 1}
		if i > 0 {
			m.dropTotals = l.marks[i-1].dropTotals
			m.dropped, m.late = maps.Clone(m.dropped), maps.Clone(m.late)
		}
		l.marks = slices.Insert(l.marks, i, m)
	}
	for ; i < len(l.marks); i++ {
		l.marks[i].abandoned += n
	}
}

func (l *ledger) dropBySocket(n uint64) {
	l.bySocket += n
	l.dirty = true
}

func (l *ledger) resetQueue(n uint64) {
	l.queueResets += n
	l.dirty = l.dirty || n > 0
}

// close is called at a checkpoint: what was lost up to now belongs before it.
// Marks older than the window's first checkpoint are dropped, but for the last
// of them.
func (l *ledger) close(checkpoint, oldest int) {
	l.number = checkpoint
	if l.dirty {
		past := l.dropTotals
		past.dropped, past.late = maps.Clone(l.dropped), maps.Clone(l.late)
		l.marks = append(l.marks, mark{checkpoint: checkpoint, dropTotals: past})
		l.dirty = false
	}
	first := 0
	for first+1 < len(l.marks) && l.marks[first+1].checkpoint <= oldest {
		first++
	}
	l.marks = slices.Delete(l.marks, 0, first)
}

// lost returns the losses after the given checkpoint, with or without the packets of
// clients that were turned away before. Packets whose cause is still being read are the
// accept queue's: that it was full is all that is known.
func (l *ledger) lost(checkpoint int, late bool) *model.Losses {
	var base dropTotals
	for _, m := range l.marks {
		if m.checkpoint <= checkpoint {
			base = m.dropTotals
		}
	}
	out := &model.Losses{
		AbandonedRequests: l.abandoned - base.abandoned,
		QueueResets:       l.queueResets - base.queueResets,
	}
	now, counted := dropTotals{dropped: maps.Clone(l.dropped)}, uint64(0)
	for i := range l.waiting {
		w := &l.waiting[i]
		if w.after >= checkpoint {
			now.add(model.DropKey{Cause: w.provisional(), Packet: w.Packet}, w.drops())
		}
	}
	for key, d := range now.dropped {
		b := base.dropped[key]
		n := d.packets - min(d.packets, b.packets)
		if counted += n; key.Packet != model.PacketSYN {
			counted += n // see kindsOf: of an ACK the socket counts two
		}
		if !late {
			n -= min(n, l.late[key]-base.late[key])
		}
		if n > 0 {
			out.By = append(out.By, model.Drops{DropKey: key, Packets: n, Estimated: d.estimated > b.estimated, Evidence: d.evidence})
			out.DroppedPackets += n
		}
	}
	bySocket := l.bySocket - base.bySocket
	out.SocketDrops = bySocket - min(bySocket, counted)
	slices.SortFunc(out.By, func(a, b model.Drops) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Packet, b.Packet))
	})
	return out
}

// totals returns the running totals for the metrics.
func (l *ledger) totals() model.Totals {
	out := model.Totals{Pending: l.pending, AbandonedRequests: l.abandoned, QueueResets: l.queueResets, Dropped: make(map[model.DropKey]uint64, len(l.dropped))}
	for key, d := range l.dropped {
		out.Dropped[key] = d.packets
	}
	return out
}

// repeated books packets of clients that were turned away before, under the cause of then.
func (l *ledger) repeated(key model.DropKey, d drops) {
	if l.late == nil {
		l.late = make(map[model.DropKey]uint64)
	}
	l.late[key] += d.packets
	l.settled(key, d, l.number)
}

// together is how far apart drops may be that get one cause.
const together = 100 * time.Millisecond

// pend books dropped packets whose cause is not known yet.
func (l *ledger) pend(d Attributed, at time.Time, repeated bool) {
	l.pending += d.Packets
	l.dirty = true
	for i := range l.waiting {
		if p := &l.waiting[i]; p.sameAs(d) && p.repeated == repeated && p.after == l.number && at.Sub(p.since) < together {
			p.Packets += d.Packets
			p.until = at
			return
		}
	}
	l.waiting = append(l.waiting, pending{Attributed: d, since: at, until: at, after: l.number, repeated: repeated})
}

// settle gives packets their cause. Those of the SYN queue have it; for the
// others cause is asked, which may answer that it is to be asked again later.
func (l *ledger) settle(cause func(Drop) (model.Cause, model.Evidence, bool)) {
	left := l.waiting[:0]
	for _, p := range l.waiting {
		c, evidence, known := model.CauseSynBacklog, model.EvidenceNone, true
		if !p.SynQueue {
			c, evidence, known = cause(p.drop())
		}
		if !known {
			left = append(left, p)
			continue
		}
		l.pending -= p.Packets
		d := p.drops()
		d.evidence = evidence
		l.settled(model.DropKey{Cause: c, Packet: p.Packet}, d, p.after)
	}
	l.waiting = left
}

// burstLength is how long a burst is looked for: a client whose SYN was dropped
// comes again after a second at the earliest, and would count twice.
const burstLength = time.Second

// burst is the most packets that were dropped within a second, or from one
// checkpoint to the next where these are further apart.
func (l *ledger) burst(past []Checkpoint) (most uint64) {
	totals := make([]uint64, len(past))
	next, total := 0, uint64(0)
	for i, c := range past {
		for ; next < len(l.marks) && l.marks[next].checkpoint <= c.Number; next++ {
			total = l.marks[next].packets()
		}
		totals[i] = total
	}
	first := 0
	for i := range past {
		for first < i-1 && past[i].At.Sub(past[first].At) > burstLength {
			first++
		}
		most = max(most, totals[i]-totals[first])
	}
	return most
}
