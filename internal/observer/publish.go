package observer

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// publisher makes snapshots of the newest facts. It asks nobody: everything it
// needs has been read.
type publisher struct {
	host, kernel string
	store        *facts.Store

	mu       sync.Mutex      // one snapshot at a time
	roster   *watchlist.List // the latest
	waiting  waiting         // causes, of the latest
	standing map[model.ListenerID]*standing
	figures  connections.Figures
}

func newPublisher(proc hostproc.FS, store *facts.Store) *publisher {
	p := &publisher{store: store, standing: make(map[model.ListenerID]*standing)}
	p.host, _ = proc.Hostname()
	p.kernel, _ = proc.KernelRelease()
	return p
}

// settle gives the drops of a listener whose namespace is closed their cause.
func (p *publisher) settle(a *losses.Account, opt *Options) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.standing[a.ID]
	if s == nil {
		s = &standing{}
	}
	s.settle(a, opt.Now(), opt.Thresholds)
}

// waits is when the next snapshot must be made for what waits in the latest.
func (p *publisher) waits() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.until
}

// edition is a snapshot in the making.
type edition struct {
	*publisher
	*model.Snapshot
	opt      *Options
	final    bool // nothing more will be read before the next one: no cause waits
	looping  bool // other snapshots follow
	earlier  map[model.ListenerID]*earlier
	departed map[uint64][]departed
	miss     facts.Missing
}

// meet takes a new roster, and notes who stands at its addresses.
func (p *publisher) meet(r *watchlist.List) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roster = r
	live := make(map[model.ListenerID]bool, len(r.Watched))
	for i := range r.Watched {
		k := &r.Watched[i]
		live[k.ID] = true
		s := p.standing[k.ID]
		if s == nil {
			s = &standing{}
			p.standing[k.ID] = s
		}
		s.meet(k, r.At)
	}
	p.figures.Keep(live)
	maps.DeleteFunc(p.standing, func(id model.ListenerID, _ *standing) bool {
		return !live[id] && !r.Remembers(id)
	})
}

// publish makes a snapshot of the latest roster.
func (p *publisher) publish(opt *Options, final, looping bool) *model.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.roster
	e := &edition{
		publisher: p, opt: opt, final: final, looping: looping,
		earlier:  make(map[model.ListenerID]*earlier),
		departed: make(map[uint64][]departed),
		Snapshot: &model.Snapshot{
			Time: opt.Now(), Host: p.host, Kernel: p.kernel, Omitted: r.Omitted,
			Targets: r.Targets, TargetInfos: r.Infos, Notes: r.Notes,
		},
	}
	p.waiting = waiting{}
	e.miss.Add(r.Unavailable...)
	e.collect()
	e.share()
	for _, n := range r.Namespaces {
		e.book(n)
	}
	e.Gone = e.retained()
	e.absent()
	diagnosis.ShareExecutors(e.Listeners)
	e.judge()
	e.miss.Add(e.unread()...)
	e.Unavailable = e.miss.List
	return e.Snapshot
}

// unread names the namespaces whose connections could not be read.
func (e *edition) unread() (out []model.Unavailable) {
	for id, err := range e.store.Unread() {
		out = append(out, model.Unavailable{What: fmt.Sprintf("connections in network namespace %d", id), Why: err.Error()})
	}
	return out
}

// judge gives every listener its verdict.
func (e *edition) judge() {
	nets := make(map[uint64]*model.NetNS, len(e.NetNS))
	for i := range e.NetNS {
		nets[e.NetNS[i].ID] = &e.NetNS[i]
	}
	for i := range e.Listeners {
		l := &e.Listeners[i]
		s := e.standing[l.ID]
		e.weak(l)
		j := judged{now: e.Time, interval: e.Interval, every: e.opt.ScanInterval, first: e.looping, t: e.opt.Thresholds}
		if net := nets[l.ID.NetNS]; net != nil {
			j.sysctl, j.delta = net.Sysctl, net.Delta
		}
		j.latched = e.latched(l)
		j.closed = closedBefore(e.departed[l.ID.NetNS], l.Port, l.ID, s, e.Time)
		if s == nil || !l.Listening() {
			seen := diagnosis.Evidence{Now: l, Interval: j.interval, Sysctl: j.sysctl, Delta: j.delta, Closed: j.closed}
			l.Verdict, l.Basis = diagnosis.Judge(seen, j.t), seen.Basis()
			continue
		}
		s.judge(l, e.earlier[l.ID], &j)
	}
}
