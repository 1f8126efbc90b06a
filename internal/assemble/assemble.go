// Package assemble makes snapshots of facts: (state, facts) → (state, snapshot). It is
// pure, asks nobody and knows no clock. Each listener is judged once; the state is what the
// next judgement compares with.
//
// Read assemble.go first. Drops that wait for a cause get it by Causes, before the totals
// are taken; Snapshot then makes the listeners of the readings (compose.go) with what is
// counted (counted.go) and with their clients (clients/accounts), and judges them (history.go).
package assemble

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/clients/accounts"
	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Options of an assembly.
type Options struct {
	Thresholds reading.Thresholds
	Every      time.Duration // between two snapshots
	Final      bool          // nothing more will be read before the next one: no cause waits
	Looping    bool          // other snapshots follow
}

// State is what an assembly remembers for the next one: who listens at each address, how
// that stood, and the verdict that is shown. It is not changed.
type State struct {
	list      *facts.Watchlist
	histories map[model.ListenerID]*history
	figures   connections.Figures
	waits     time.Time
	last      map[expected]model.LastListener // of the expected ports
	callers   map[expected]callers            // of the ports that nobody expects, and on which nothing listens
	clients   *accounts.State                 // nil where none are counted
}

// Waits is when the next snapshot must be made for the causes that wait, zero for none.
func (s *State) Waits() time.Time { return s.waits }

// draft is a snapshot in the making.
type draft struct {
	*model.Snapshot
	next    *State // a copy, which nobody else has
	f       *facts.View
	opt     *Options
	earlier map[model.ListenerID]*earlier
	miss    facts.Missing
}

// Snapshot makes one of what is known. state is nil before the first.
func Snapshot(state *State, f *facts.View, opt Options) (*State, *model.Snapshot) {
	d := compose(state, f, opt)
	d.judge()
	return d.next, d.Snapshot
}

// compose makes the listeners of what is known.
func compose(state *State, f *facts.View, opt Options) *draft {
	d := newDraft(state, f, &opt)
	d.miss.Add(f.Watchlist.Unavailable...)
	d.listeners()
	d.slotsMissing()
	for i := range f.Namespaces {
		d.count(&f.Namespaces[i])
	}
	d.Retired = f.Retained
	d.down()
	d.stacks()
	reading.ShareExecutors(d.Listeners)
	for i := range d.Listeners {
		d.sayWeak(&d.Listeners[i])
	}
	for _, id := range slices.Sorted(maps.Keys(f.Unread)) {
		d.miss.Add(model.Unavailable{What: fmt.Sprintf("connections in network namespace %d", id), Why: f.Unread[id].Error()})
	}
	d.Unavailable = d.miss.List
	d.next.clients = accounts.Add(d.next.clients, f.Clients, d.Snapshot)
	d.Self.SourceUp = sources(f)
	return d
}

func newDraft(state *State, f *facts.View, opt *Options) *draft {
	d := &draft{
		f: f, opt: opt, next: state.copy(), earlier: make(map[model.ListenerID]*earlier),
		Snapshot: &model.Snapshot{
			Time: f.Time, Interval: f.Interval(), Host: f.Host, Kernel: f.Kernel, Self: f.Self, Omitted: f.Watchlist.Omitted,
			Targets: f.Watchlist.Targets, TargetInfos: f.Watchlist.Infos, Notes: f.Watchlist.Notes,
		},
	}
	if d.next.list != f.Watchlist {
		d.next.setList(f)
	}
	return d
}

func (s *State) copy() *State {
	if s == nil {
		return &State{histories: make(map[model.ListenerID]*history), last: make(map[expected]model.LastListener)}
	}
	out := &State{list: s.list, histories: make(map[model.ListenerID]*history, len(s.histories)), figures: s.figures.Clone(), last: maps.Clone(s.last), callers: s.callers, clients: s.clients}
	all := make([]history, 0, len(s.histories))
	for id, h := range s.histories {
		all = append(all, *h)
		out.histories[id] = &all[len(all)-1]
	}
	return out
}

// setList takes another list, and notes who listens at its addresses. What nothing is counted
// of any more is forgotten.
func (s *State) setList(f *facts.View) {
	s.list = f.Watchlist
	live := make(map[model.ListenerID]bool, len(s.list.Watched))
	for i := range s.list.Watched {
		w := &s.list.Watched[i]
		live[w.ID] = true
		h := s.histories[w.ID]
		if h == nil {
			h = &history{}
			s.histories[w.ID] = h
		}
		h.setListener(w, s.list.At)
	}
	s.figures.Retain(live)
	maps.DeleteFunc(s.histories, func(id model.ListenerID, _ *history) bool {
		n := f.Namespace(id.NetNS)
		return !live[id] && (n == nil || n.Accounts[id] == nil)
	})
}

// judge gives every listener its verdict, once.
func (d *draft) judge() {
	d.missed()
	nets := make(map[uint64]*model.NetNS, len(d.NetNS))
	for i := range d.NetNS {
		nets[d.NetNS[i].ID] = &d.NetNS[i]
	}
	for i := range d.Listeners {
		l := &d.Listeners[i]
		h := d.next.histories[l.ID]
		j := judged{now: d.Time, interval: d.Interval, every: d.opt.Every, first: d.opt.Looping, t: d.opt.Thresholds}
		if net := nets[l.ID.NetNS]; net != nil {
			j.sysctl, j.delta = net.Sysctl, net.Delta
		}
		j.latched = d.latched(l)
		if seen, ok := d.judgement(l); ok {
			l.Acceptor = seen.Acceptor
		}
		if n := d.f.Namespace(l.ID.NetNS); n != nil && n.Counted {
			j.closed = closedBefore(closings(n.Accounts, d.Time, n.Window.Interval), l.Port, l.ID, h, d.Time)
		}
		if h == nil || !l.Listening() {
			seen := symptoms.Input{Now: l, Interval: j.interval, Sysctl: j.sysctl, Delta: j.delta, Closed: j.closed}
			l.Verdict, l.Basis = diagnosis.Judge(seen, j.t), seen.Basis()
		} else {
			h.judge(l, d.earlier[l.ID], &j)
		}
		l.Verdict = diagnosis.AddClients(l.Verdict, l, j.interval)
		d.next.clients.Judged(l, d.Time)
	}
}

// sources says what could be read lately, for source_up.
func sources(f *facts.View) map[string]bool {
	answers := len(f.Watchlist.Silent) == 0
	up := map[string]bool{"sock_diag": answers && len(f.Unread) == 0, "netstat": answers, "sysctl": true, "sockstat": true}
	for i := range f.Namespaces {
		n := &f.Namespaces[i]
		if !n.Counted {
			continue
		}
		up["sysctl"] = up["sysctl"] && n.SysctlOK
		up["sockstat"] = up["sockstat"] && n.Sockstat != nil
		up["sock_diag"] = up["sock_diag"] && n.Answers
	}
	for i := range f.Watchlist.Watched {
		list := f.Connections[f.Watchlist.Watched[i].ID]
		if last, ok := list.Last(); ok && last.Value.Counts.Partial {
			up["sock_diag"] = false
		}
	}
	return up
}

// stacks gives the processes what their JVMs said of their threads.
func (d *draft) stacks() {
	if len(d.f.Stacks) == 0 {
		return
	}
	var keys []hostproc.ProcessKey
	for i := range d.Listeners {
		p := d.Listeners[i].Process
		if p == nil {
			continue
		}
		key := hostproc.ProcessKey{PID: p.PID, StartTime: p.StartTime}
		known, ok := d.f.Stacks[key]
		if !ok {
			continue
		}
		p.Stacks = known.Stacks
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, key := range append(keys, hostproc.ProcessKey{}) { // what concerns no process of its own comes last
		d.add(d.f.Stacks[key].Missed)
	}
}

func (d *draft) add(list []model.Unavailable) { d.miss.Add(list...) }
