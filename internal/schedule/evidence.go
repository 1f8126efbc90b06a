package schedule

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// closest is the least time between two steps of a clock that the samples wake:
// in trouble they do so a hundred times a second.
const closest = 10 * time.Millisecond

// evidence is the second clock: acceptors and processes, trouble first.
func (t *tasks) evidence(ctx context.Context) {
	s := t.scheduler
	every(ctx, s.bells.read, s.options().Now, always(closest), t.read)
}

// read reads what is due, and says when the next reading will be.
func (t *tasks) read() time.Duration {
	s := t.scheduler
	r, now := s.list.Load(), s.options().Now()
	troubled := make(map[model.ListenerID]*facts.Sampled)
	waiting := make(map[model.ListenerID]*facts.Sampled)
	for _, n := range r.Namespaces {
		if !n.Troubled(now.Add(-troubleOver)) && !namespace.Queued(n) {
			continue
		}
		list := n.Readings()
		for i := range list {
			switch l := &list[i]; {
			case l.Closed:
			case !l.Full.IsZero() || now.Sub(l.Moved) < troubleOver:
				troubled[l.ID] = l
			case t.stands(l, now):
				waiting[l.ID] = l
			}
		}
	}
	before := t.readings
	wait := t.judge(r, now, func(id model.ListenerID) *facts.Sampled { return cmp.Or(troubled[id], waiting[id]) })
	wait = min(wait, t.readProcesses(r, now, troubled))
	s.acceptors.Retain(r.Watchlist)
	if t.readings != before && wait > secondReading { // all that was wanted has been read
		s.bells.publish.ring()
	}
	return wait
}

// standsFor is how long clients wait in an accept queue with room until it is asked
// why: what only passes through is gone by then.
const standsFor = time.Second

// nearWalk is how old the walk may be that shows how long they have waited.
const nearWalk = 1500 * time.Millisecond

// stands reports whether clients have waited in a queue for that time: by the samples, or
// by the age of the oldest at the latest walk.
func (t *tasks) stands(l *facts.Sampled, now time.Time) bool {
	if l.Stands.IsZero() || now.Sub(l.Stands) >= standsFor {
		return !l.Stands.IsZero()
	}
	list := t.scheduler.facts.Connections(l.ID)
	last, ok := list.Last()
	return ok && last.Value.OldestWait >= standsFor && now.Sub(last.At) <= nearWalk
}

// judge reads the evidence of the listeners whose clients are held up.
func (t *tasks) judge(r *watchlist.List, now time.Time, inTrouble func(model.ListenerID) *facts.Sampled) time.Duration {
	wait := time.Second
	undecided := false
	defer func() { t.pending.Store(undecided) }()
	t.judges.retain(len(r.Watched), r.Watches)
	for i := range r.Watched {
		e := &r.Watched[i]
		l := inTrouble(e.ID)
		if l == nil || e.Owner == nil {
			continue
		}
		p := t.judges.of(e.ID)
		if due := p.due(now, true, 0, 1); due.After(now) {
			undecided = undecided || t.scheduler.acceptors.Undecided(e.ID)
			wait = min(wait, due.Sub(now))
			continue
		}
		cost, pending := t.scheduler.acceptors.Read(e, int(l.Queue.Length), l.Taken, r.Watchlist, t.phases(e, now))
		t.scheduler.bucket.spend(cost)
		p.began(now, cost, !pending)
		t.readings++
		undecided = undecided || t.scheduler.acceptors.Undecided(e.ID)
		if pending { // the second reading decides
			p.last = now.Add(secondReading - p.gap)
			wait = min(wait, secondReading)
		}
	}
	return wait
}

// secondReading is when a reading that alone proves nothing is followed by
// another.
const secondReading = evidence.MinApart + 5*time.Millisecond

// phases is what the nearest walk says of a listener's connections.
func (t *tasks) phases(e *facts.Watched, now time.Time) (out evidence.Phases) {
	list := t.scheduler.facts.Connections(e.ID)
	if last, ok := list.Last(); ok {
		c := last.Value.Behind(e.Connector)
		out.Walked, out.Age, out.Partial = true, now.Sub(c.At), !c.Exact()
		out.SlotsInUse, out.Idle, out.Set = c.SlotsInUse(), c.Unused(), last.Value.Set()
	}
	if c := e.Connector; c != nil && c.MaxConnections != nil {
		out.MaxConnections, out.Uncertain = evidence.Known(c.MaxConnections.Value), c.MaxConnections.Uncertain
		out.Given = c.MaxConnections.Given()
	}
	out.ByWorkers = e.Connector != nil && e.Connector.AcceptsWithWorkers()
	return out
}

// longestUnread are the processes, those first that were never read: nothing is known of them, and where
// pods come and go there is not time enough for all.
func (t *tasks) longestUnread(owners map[hostproc.ProcessKey]*facts.Watched) []hostproc.ProcessKey {
	return slices.SortedFunc(maps.Keys(owners), func(a, b hostproc.ProcessKey) int {
		return t.reads.of(a).last.Compare(t.reads.of(b).last)
	})
}

// mayOverdraw: a first reading is made now and then whatever CPU time is saved up.
func (t *tasks) mayOverdraw(p *pace, now time.Time) bool {
	if !p.last.IsZero() || now.Sub(t.overdrawn) < firstGap {
		return false
	}
	t.overdrawn = now
	return true
}

// readProcesses reads the processes that are due.
func (t *tasks) readProcesses(r *watchlist.List, now time.Time, troubled map[model.ListenerID]*facts.Sampled) time.Duration {
	s := t.scheduler
	level := s.bucket.fill(now, s.others())
	owners := r.Owners()
	inTrouble := make(map[hostproc.ProcessKey]bool)
	for i := range r.Watched {
		if key, ok := r.Watched[i].Process(); ok && troubled[r.Watched[i].ID] != nil {
			inTrouble[key] = true
		}
	}
	wait, watching, still := time.Second, t.watching.Load(), false
	for _, key := range t.longestUnread(owners) {
		inTrouble[key] = inTrouble[key] || watching && s.processes.MayStand(key)
		p := t.reads.of(key)
		due := p.due(now, inTrouble[key], s.options().ScanInterval, len(owners))
		switch {
		case due.After(now):
			wait = min(wait, t.wait(due.Sub(now), inTrouble[key]))
		case !inTrouble[key] && level < p.cost && !t.mayOverdraw(p, now):
			wait = min(wait, t.wait(saving(p.cost-level), false))
			if p.last.IsZero() {
				wait = min(wait, firstGap)
			}
		default:
			cost := s.processes.Read(key)
			s.bucket.spend(cost)
			level -= cost
			p.began(now, cost, inTrouble[key])
			if inTrouble[key] {
				t.readings++
			}
		}
		still = still || s.processes.MayStand(key)
	}
	t.still.Store(still)
	s.processes.Retain(owners)
	t.reads.retain(len(owners), func(key hostproc.ProcessKey) bool { return owners[key] != nil })
	return wait
}
