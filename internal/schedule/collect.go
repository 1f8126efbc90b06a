package schedule

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/assemble"
	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// collector collects the newest facts and has a snapshot made of them. It asks nobody but the taps:
// everything else that it needs has been read.
type collector struct {
	host, kernel string
	store        *facts.Store

	turn sync.Mutex // one snapshot at a time; it is held while the taps are asked

	mu    sync.Mutex
	state *assemble.State

	clients atomic.Pointer[Clients]
}

// Clients say what became of the clients of the listeners.
type Clients interface {
	// Read has the taps report, for the next Count.
	Read()
	// Count puts what the taps have reported into the facts.
	Count(v *facts.View)
}

func newCollector(proc hostproc.FS, store *facts.Store) *collector {
	p := &collector{store: store}
	p.host, _ = proc.Hostname()
	p.kernel, _ = proc.KernelRelease()
	return p
}

// settle gives the drops of a listener whose namespace is closed their cause.
func (p *collector) settle(a *losses.Account, opt *Options) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.Name(assemble.FinalCauses(p.state, opt.Now(), a.ID, a.Waiting(), opt.Thresholds))
}

// waits is when the next snapshot must be made for what waits in the latest.
func (p *collector) waits() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		return time.Time{}
	}
	return p.state.Waits()
}

// inTrouble reports whether a listener of a snapshot is saturated, loses clients or
// is down: the recording of its incident is to hold all but the last second.
func inTrouble(s *model.Snapshot) bool {
	for i := range s.Listeners {
		if l := &s.Listeners[i]; l.Verdict.Status >= model.StatusSaturated || l.Totals.Pending > 0 {
			return true
		}
	}
	return false
}

// Publish makes one more snapshot of what is known, with nothing read for it: for what was
// put into the facts since the last one of a one-shot.
func (s *Scheduler) Publish() { s.publish(true) }

// publish makes a snapshot of the newest facts. final: no cause waits for a
// reading.
func (s *Scheduler) publish(final bool) {
	r := s.list.Load()
	if r == nil {
		return
	}
	now := s.options().Now()
	self := s.self.report(now)
	self.CalmInterval = time.Duration(s.turns.number()) * s.options().SampleInterval
	snap := s.collector.publish(r, s.options(), self, final, s.looping.Load())
	s.published.store(snap)
	s.self.published(snap.Time)
}

// publish is the third clock.
func (t *tasks) publish(ctx context.Context, read <-chan struct{}) {
	s := t.scheduler
	select {
	case <-read:
	case <-time.After(firstPatience):
	case <-ctx.Done():
		return
	}
	p := pace{gap: troubleGap}
	least := func() time.Duration { return min(p.gap, fresh) }
	every(ctx, s.bells.publish, s.options().Now, least, func() time.Duration {
		cost, _ := cputime.Of(func() error { s.publish(false); return nil })
		troubled := inTrouble(s.Snapshot())
		now := s.options().Now()
		p.began(now, cost, troubled)
		if troubled {
			p.trouble = now
			next := min(s.options().ScanInterval, fresh)
			if until := s.collector.waits(); !until.IsZero() {
				next = min(next, until.Sub(now))
			}
			return next
		}
		if now.Sub(p.trouble) > troubleOver {
			p.gap = troubleGap
		}
		return min(s.options().ScanInterval, time.Second)
	})
}

// publish makes a snapshot of the newest facts; self is what the schedule knows of itself.
func (p *collector) publish(r *watchlist.List, opt *Options, self model.Self, final, looping bool) (out *model.Snapshot) {
	p.turn.Lock()
	defer p.turn.Unlock()
	o := assemble.Options{Thresholds: opt.Thresholds, Every: opt.ScanInterval, Final: final, Looping: looping}
	f := p.collect(r, opt, self, o)
	if clients := p.clients.Load(); clients != nil {
		(*clients).Read()
		(*clients).Count(f)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, out = assemble.Snapshot(p.state, f, o)
	return out
}

// collect collects the facts, and gives the drops that wait their causes.
func (p *collector) collect(r *watchlist.List, opt *Options, self model.Self, o assemble.Options) *facts.View {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.store.View()
	self.Agent = f.Self.Agent
	f.Time, f.Host, f.Kernel, f.Self, f.Watchlist = opt.Now(), p.host, p.kernel, self, r.Watchlist
	f.Namespaces = make([]facts.Namespace, len(r.Namespaces))
	for i, n := range r.Namespaces {
		f.Namespaces[i] = n.Facts()
		f.Namespaces[i].Accounts = waiting(n)
	}
	c := collection{View: f, list: r, opt: opt, causes: assemble.Causes(p.state, f, o)}
	for i, n := range r.Namespaces {
		c.count(n, &f.Namespaces[i])
	}
	c.retain()
	return f
}

// waiting are the accounts of a namespace that have drops without a cause.
func waiting(n *namespace.Namespace) (out map[model.ListenerID]*losses.Report) {
	n.Books(func(b *losses.Books) {
		for id, a := range b.Accounts() {
			if a.Waits() {
				if out == nil {
					out = make(map[model.ListenerID]*losses.Report)
				}
				out[id] = &losses.Report{Waiting: a.Waiting(), Absent: a.Absent}
			}
		}
	})
	return out
}

// collection takes the totals of what is counted.
type collection struct {
	*facts.View
	list   *watchlist.List
	opt    *Options
	causes map[model.ListenerID]losses.Causes
	closed []facts.ClosedTotals
}

// count takes those of a namespace, once the drops that wait there have got the causes
// that are known.
func (c *collection) count(n *namespace.Namespace, out *facts.Namespace) {
	out.Accounts = make(map[model.ListenerID]*losses.Report)
	watched := c.list.In(n.ID)
	live := make(map[model.ListenerID]bool, len(watched))
	for _, w := range watched {
		live[w.ID] = true
	}
	n.Books(func(b *losses.Books) {
		if out.Counted = out.Counted && b.Open(); out.Counted {
			out.Window = b.Window()
			for _, w := range watched {
				a := b.Account(w.ID)
				a.User, a.LastSeen, a.Absent = w.Members[0].UID, c.Time, false
				a.Name(c.causes[w.ID])
				out.Accounts[w.ID] = b.Report(a, c.Time, len(watched) == 1, c.opt.Lately)
			}
			silent := c.list.Silent[n.ID]
			b.Leave(c.Time, func(a *losses.Account) bool { return !live[a.ID] && (!silent || a.Absent) },
				func(id model.ListenerID) losses.Causes { return c.causes[id] })
			out.Down = down(b, c.Watchlist, n.ID)
		}
		for id, a := range b.Accounts() {
			if live[id] {
				continue
			}
			out.Accounts[id] = &losses.Report{Closed: a.Closed(), Absent: a.Absent, Totals: a.Totals()}
			if c.list.Silent[n.ID] && !a.Absent {
				c.Retained = append(c.Retained, a.Retain())
				continue
			}
			c.closed = append(c.closed, facts.ClosedTotals{LastSeen: a.LastSeen, User: a.User, RetainedTotals: a.Retain()})
		}
	})
}

// down are the losses at the expected ports of a namespace on which nothing listens.
func down(b *losses.Books, w *facts.Watchlist, netns uint64) (out map[uint16]*model.Losses) {
	for _, t := range w.Targets {
		if t.NetNS != netns || t.Up {
			continue
		}
		if out == nil {
			out = make(map[uint16]*model.Losses)
		}
		out[t.Port] = b.Sum(t.Port)
	}
	return out
}

// retain takes the totals of the listeners that are not there: in front those
// whose namespace did not answer, then the closed ones, the latest of each namespace, and there of each
// user, first; as many as may be watched, as ports that open for a moment and never again must
// neither fill the memory nor displace somebody else's.
func (c *collection) retain() {
	closed := slices.Concat(c.closed, c.list.Retired)
	slices.SortFunc(closed, func(a, b facts.ClosedTotals) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	for i, t := range losses.InTurns(closed, func(c *facts.ClosedTotals) (uint64, uint32) { return c.ID.NetNS, c.User }) {
		if most := c.opt.MaxListeners; most > 0 && i >= most {
			c.forget(t.ID)
			continue
		}
		c.Retained = append(c.Retained, t.RetainedTotals)
	}
}

// forget drops the account of a closed listener.
func (c *collection) forget(id model.ListenerID) {
	if n := c.list.Namespace(id.NetNS); n != nil {
		n.Books(func(b *losses.Books) { b.Remove(id) })
	}
}
