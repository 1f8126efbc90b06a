package observer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/target"
)

// lister makes the rosters: it lists the listeners of all namespaces, finds
// their owners and what stands behind them, and says which are watched.
type lister struct {
	src        *Sources
	places     *places
	connectors *connectors
	oneShot    bool // no further roster follows the next one
}

// listing is a roster in the making.
type listing struct {
	*lister
	*roster
	opt   *Options
	rules target.Rules
	miss  missing
}

// list makes a roster. It fails only when no namespace answers. With a patience
// it waits for the discoveries under way.
func (l *lister) list(ctx context.Context, opt *Options, patience time.Duration) (*roster, error) {
	r := &listing{lister: l, opt: opt, roster: &roster{at: opt.Now(), silent: make(map[uint64]bool)}}
	l.places.discover(r.at, opt, &r.miss)
	if err := r.listeners(); err != nil {
		return nil, err
	}
	r.rules = target.Rules{Selection: opt.selection(), Scope: l.places.scope(opt, r.silent, l.oneShot)}
	owners := findOwners(r)
	r.notes = r.rules.Claim(r.all, owners.searched)
	r.behind(ctx, patience)
	r.keep()
	r.index()
	r.sayOwners(owners.denied)
	r.retire()
	r.roster.places = slices.Clone(l.places.list)
	r.unavailable = r.miss.list
	return r.roster, ctx.Err()
}

// listeners takes a checkpoint of every namespace.
func (r *listing) listeners() error {
	var errs []error
	for _, n := range r.lister.places.list {
		listed, err := n.List(r.at)
		if err != nil {
			errs = append(errs, err)
			r.silent[n.ID] = true
			r.miss.add(model.Unavailable{What: fmt.Sprintf("listeners in network namespace %d", n.ID), Why: err.Error()})
			continue
		}
		r.all = append(r.all, candidates(listed)...)
	}
	if len(errs) > 0 && len(errs) == len(r.lister.places.list) {
		return errors.Join(errs...)
	}
	return nil
}

func candidates(listed []namespace.Listed) []*target.Candidate {
	ids, listeners := make([]model.ListenerID, len(listed)), make([]sockdiag.Listener, len(listed))
	for i := range listed {
		ids[i], listeners[i] = listed[i].ID, listed[i].Listener
	}
	return target.Group(ids, listeners)
}

// restPer is how long a process's limits rest for each process that has some: to
// check whether they still hold takes a tenth of a millisecond.
const restPer = 100 * time.Millisecond

// byProcess are all listeners of the processes that have one which may be wanted:
// which of a process's ports is the connector's only all of them together can show.
func (r *listing) byProcess() map[hostproc.ProcessKey][]*target.Candidate {
	out := make(map[hostproc.ProcessKey][]*target.Candidate)
	wanted := make(map[hostproc.ProcessKey]bool)
	for _, c := range r.all {
		if c.Owner != nil {
			key := hostproc.ProcessKey{PID: c.Owner.PID, StartTime: c.Owner.StartTime}
			out[key] = append(out[key], c)
			wanted[key] = wanted[key] || r.rules.MayWant(c)
		}
	}
	maps.DeleteFunc(out, func(key hostproc.ProcessKey, _ []*target.Candidate) bool { return !wanted[key] })
	return out
}

// behind asks once per process what stands behind its listeners.
func (r *listing) behind(ctx context.Context, patience time.Duration) {
	byProcess := r.byProcess()
	rest := max(r.opt.ScanInterval/2, time.Duration(len(byProcess))*restPer)
	if patience > 0 {
		rest = 0
		for key, list := range byProcess {
			r.connectors.of(key, ports(list), rest)
		}
		r.connectors.wait(ctx, patience)
		rest = time.Hour
	}
	for key, list := range byProcess {
		found, unavailable := r.connectors.of(key, ports(list), rest)
		for _, c := range list {
			c.Connector = found[c.ID.Address].Times(c.Processes)
			c.Unavailable = unavailable
		}
	}
	r.connectors.forget()
	r.unseen(ctx)
}

// unseen asks the given Actuators about the listeners of the agent's own
// namespace that no process of this /proc holds. They may answer on a port that
// nobody asked for.
func (r *listing) unseen(ctx context.Context) {
	var list []*target.Candidate
	for _, c := range r.all {
		if n := r.lister.places.find(c.ID.NetNS); c.Owner == nil && n != nil && n.Own {
			list = append(list, c)
		}
	}
	if r.src.Tomcat == nil || len(r.opt.actuators()) == 0 || !slices.ContainsFunc(list, r.rules.MayWant) {
		return
	}
	found, unavailable := r.src.Tomcat.DiscoverUnseen(ctx, ports(list))
	for _, c := range list {
		c.Connector = found[c.ID.Address]
	}
	r.miss.add(unavailable...)
}

func ports(list []*target.Candidate) []discovery.Listening {
	out := make([]discovery.Listening, len(list))
	for i, c := range list {
		out[i] = discovery.Listening{Port: c.Port(), Address: c.ID.Address.Addr(), SendQ: int(c.Worst().SendQ)}
	}
	return out
}

// keep leaves out what the targets do not name and what is beyond
// --max-listeners, and has the others watched.
func (r *listing) keep() {
	kept, note := r.rules.Keep(r.all)
	if note != "" {
		r.notes = append(r.notes, note)
	}
	if most := r.opt.MaxListeners; most > 0 && len(kept) > most {
		r.omitted = len(kept) - most
		kept = fairShares(kept, most)
	}
	r.watch(kept)
	// Which ports are served is known by now.
	r.rules.Scope = r.lister.places.scope(r.opt, r.silent, r.oneShot)
	targets, notes := r.rules.Expected(r.all)
	r.targets, r.notes = targets, append(r.notes, notes...)
	r.infos = r.rules.Infos(r.opt.Labels, kept)
}

// fairShares are the candidates that are watched when there are too many: no
// namespace displaces another's.
func fairShares(list []*target.Candidate, most int) []*target.Candidate {
	claimants := make([]target.Claimant, len(list))
	for i, c := range list {
		claimants[i] = target.Claimant{NetNS: c.ID.NetNS, Explicit: c.Expected()}
	}
	out := make([]*target.Candidate, 0, most)
	for _, i := range target.Shares(claimants, most) {
		out = append(out, list[i])
	}
	return out
}

// watch gives the samples what is kept; of a namespace that did not answer, those
// of its latest answer stay.
func (r *listing) watch(kept []*target.Candidate) {
	lists := make(map[uint64][]namespace.Listening)
	for _, c := range kept {
		n := r.lister.places.find(c.ID.NetNS)
		if err := n.Follow(r.at); err != nil {
			r.miss.add(model.Unavailable{What: fmt.Sprintf("counters of network namespace %d", n.ID), Why: err.Error()})
			continue
		}
		if c.Expected() {
			n.Served[c.Port()] = true
		}
		lists[n.ID] = append(lists[n.ID], namespace.Listening{ID: c.ID, Members: c.Members})
		r.kept = append(r.kept, entry{c, c.Limits(r.opt.Limits).Apply(c.Connector)})
	}
	for _, n := range r.lister.places.list {
		if !r.silent[n.ID] && n.Open() {
			n.Watch(r.at, lists[n.ID])
		}
	}
}

// retire takes over the totals of namespaces that are closed.
func (r *listing) retire() {
	p := r.lister.places
	p.retired.Expire(r.at)
	for _, n := range p.list {
		n.Books(func(b *losses.Books) {
			p.retired.Remove(func(a *losses.Account) bool { return b.Accounts()[a.ID] != nil })
		})
	}
	list := slices.Clone(p.retired.Accounts())
	losses.LatestFirst(list)
	if most := r.opt.MaxListeners; most > 0 && len(list) > most {
		for _, a := range list[most:] {
			p.retired.Remove(func(other *losses.Account) bool { return other == a })
		}
		list = list[:most]
	}
	for _, a := range list {
		r.retired = append(r.retired, closedTotals{a.LastSeen, a.Retain()})
	}
}
