package schedule

import (
	"context"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// connections is the fourth clock: by namespace, trouble first.
func (t *tasks) connections(first, ctx context.Context, read chan<- struct{}) {
	s := t.scheduler
	if r := s.list.Load(); s.readAll(first, r) != nil {
		s.bells.publish.ring()
	}
	now := s.options().Now()
	for _, n := range s.list.Load().Namespaces {
		t.walks.of(n.ID).began(now, 0, false)
	}
	close(read)
	every(ctx, s.bells.walk, s.options().Now, always(closest), t.readDue)
}

// atATime is how long readings follow one another without a pause: waking up for one
// that asks for twenty connections takes longer than itself.
const atATime = 5 * time.Millisecond

// readDue reads the connections of the namespaces that need it most, if some are due,
// and says when the next one will be.
func (t *tasks) readDue() time.Duration {
	for begun := time.Now(); ; {
		next, read := t.readNext()
		if !read || time.Since(begun) >= atATime {
			return next
		}
	}
}

func (t *tasks) readNext() (next time.Duration, read bool) {
	s := t.scheduler
	r, now := s.list.Load(), s.options().Now()
	level := s.bucket.fill(now, s.others())
	next, n, troubled := t.nextReading(r, now, level)
	if n == nil {
		return next, false
	}
	away := s.lister.Namespaces.Shared.Away()
	cost, _ := s.readConnections(r, n) // the snapshot says what could not be read
	cost += time.Duration(s.lister.Namespaces.Shared.Away() - away)
	s.bucket.spend(cost)
	s.self.scanned(s.options().Now().Sub(now))
	t.walks.of(n.ID).began(now, cost, troubled)
	t.walks.retain(len(r.Namespaces), func(netns uint64) bool { return r.Has(netns) })
	if troubled {
		s.bells.publish.ring()
	}
	s.scanner.Retain(r.Watchlist)
	return 0, true
}

// wait is how long to wait for what is due then: what is calm is read together with what
// else will be by then.
func (t *tasks) wait(due time.Duration, troubled bool) time.Duration {
	if troubled {
		return due
	}
	return max(due, min(t.scheduler.options().ScanInterval, time.Second))
}

// nextReading picks the namespace to read: of those in trouble, then of the calm
// ones if there is CPU time left, the one that has waited longest. Those in trouble wait
// for what their readings cost once the bucket is empty. Where clients give up and nothing else is in trouble,
// which any of them can do at any server, it is a calm one that is read each second.
func (t *tasks) nextReading(r *watchlist.List, now time.Time, level time.Duration) (wait time.Duration, pick *namespace.Namespace, troubled bool) {
	wait = time.Second
	watched, troubles, followed := 0, t.troubles, t.followed
	t.troubles, t.followed = 0, 0
	for _, n := range r.Namespaces {
		if len(r.In(n.ID)) > 0 {
			watched++
		}
	}
	var oldest time.Time
	for _, n := range r.Namespaces {
		if len(r.In(n.ID)) == 0 {
			continue
		}
		p := t.walks.of(n.ID)
		trouble := n.Troubled(p.last) || t.scheduler.scanner.Pressed(r.In(n.ID))
		due := p.due(now, trouble, t.scheduler.options().ScanInterval, watched)
		if trouble {
			t.troubles++
		}
		saved := level >= min(p.cost, capacity-reserve) // more is never saved up
		follow := !trouble && t.scheduler.scanner.GivesUp(r.In(n.ID))
		if follow {
			t.followed++
			due = p.follow(saved, followed)
		}
		if paid := p.paid(troubles); trouble && level < p.another() && paid.After(due) {
			due = paid
		}
		switch {
		case due.After(now):
			wait = min(wait, t.wait(due.Sub(now), trouble || follow))
		case !trouble && !follow && !saved:
			wait = min(wait, t.wait(saving(min(p.cost, capacity-reserve)-level), false))
		case pick == nil, trouble && !troubled, trouble == troubled && p.last.Before(oldest):
			pick, troubled, oldest = n, trouble, p.last
		}
	}
	return wait, pick, troubled
}
