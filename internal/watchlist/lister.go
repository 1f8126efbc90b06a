package watchlist

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/kubelet"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// New makes a Lister; done is called when a discovery has ended.
func New(src *Sources, now func() time.Time, done func()) *Lister {
	discover := func(ctx context.Context, pid int, start uint64, ports []match.Listening) (match.Connectors, []model.Unavailable) {
		if src.Discovery == nil {
			return nil, nil
		}
		return src.Discovery.Discover(ctx, pid, start, ports)
	}
	return &Lister{Sources: src, Namespaces: newNamespaces(src), Connectors: newConnectors(discover, now, done)}
}

// Adopt makes the options' namespaces those that are open, and their Actuators
// those that are asked.
func (l *Lister) Adopt(o *Options) error {
	if err := l.Namespaces.adopt(o); err != nil {
		return err
	}
	if l.Sources.Discovery != nil {
		l.Sources.Discovery.SetActuators(o.Actuators())
	}
	if l.names == nil && o.KubeletLogs != "" {
		l.names = kubelet.New(o.KubeletLogs, o.Now)
		if o.AllNamespaces {
			l.arrivals = newArrivals(o.KubeletLogs)
		}
	}
	return nil
}

// sysctlRest makes the sysctls' rest longer where there are many namespaces: to
// enter one and read its dozen files (0.16 to 0.35 ms) takes less than a tenth of a per
// cent of a core so.
const sysctlRest = 500 * time.Millisecond

// sysctlsEvery is how often the sysctls are read again, which hardly ever change.
const sysctlsEvery = 10 * time.Second

// addressesEvery is how often it is asked whether the listeners' addresses are there, where any is of one interface; with
// many namespaces addressRest for each of them.
const (
	addressesEvery = 2 * time.Second
	addressRest    = 100 * time.Millisecond
)

// ReadSettings reads what is read of the namespaces besides their listeners.
func (l *Lister) ReadSettings(r *List) {
	open := 0
	for _, n := range r.Namespaces {
		if n.Open() {
			open++
		}
	}
	for _, n := range r.Namespaces {
		if n.Open() {
			n.ReadSysctls(r.At, max(sysctlsEvery, time.Duration(open)*sysctlRest))
			n.ReadAddresses(r.At, max(addressesEvery, time.Duration(open)*addressRest))
			n.ReadSockstat()
		}
	}
}

// Lister makes the lists: it lists the listeners of all namespaces, finds
// their owners and what stands behind them, and says which are watched.
type Lister struct {
	Sources    *Sources
	Namespaces *Namespaces
	Connectors *connectors
	OneShot    bool // no further list follows the next one

	elsewhere elsewhere
	draining  draining
	searched  time.Duration // CPU time of the searches of the latest list for who serves a missed port

	names    *kubelet.Names                     // nil: none are read
	arrivals *arrivals                          // nil: not noticed
	pods     map[hostproc.ProcessKey]cgroup.Pod // of the owners of the latest list
}

// listing is a list in the making.
type listing struct {
	*Lister
	*List
	all     []*Candidate // every listener of every namespace
	watched []*Candidate
	opt     *Options
	rules   Rules
	miss    facts.Missing
}

// Searched is the CPU time that the latest list took to look for who serves a missed port, or still serves its connections: each
// of these searches rests by itself, and keeps no list waiting for the listener to be back.
func (l *Lister) Searched() time.Duration { return l.searched }

// List makes another list. It fails only when no namespace answers. With a patience
// it waits for the discoveries under way.
func (l *Lister) List(ctx context.Context, opt *Options, patience time.Duration) (*List, error) {
	r := &listing{Lister: l, opt: opt, List: &List{Watchlist: &facts.Watchlist{At: opt.Now(), Silent: make(map[uint64]bool)}}}
	l.searched = 0
	arrived := l.arrivals != nil && l.arrivals.list(r.At)
	l.Namespaces.discover(r.At, opt, arrived, &r.miss)
	if err := r.listeners(); err != nil {
		return nil, err
	}
	r.rules = Rules{Selection: opt.Selection(), Scope: l.Namespaces.scope(opt, r.Silent, l.OneShot)}
	owners := findOwners(r)
	r.Notes = r.rules.Claim(r.all, owners.searched)
	r.findConnectors(ctx, patience)
	r.selectWatched()
	r.seekElsewhere()
	r.seekDraining()
	r.namePods()
	r.noteJavas()
	r.Index()
	r.sayOwners(owners.denied)
	r.retire()
	r.List.Namespaces = slices.Clone(l.Namespaces.All)
	for _, n := range l.Namespaces.All {
		r.NetNS = append(r.NetNS, n.ID)
	}
	for _, c := range r.all {
		r.All = append(r.All, &c.Listening)
	}
	r.Unavailable = r.miss.List
	return r.List, ctx.Err()
}

// listeners takes a checkpoint of every namespace.
func (r *listing) listeners() error {
	var errs []error
	crowded := 0
	for _, n := range r.Lister.Namespaces.All {
		listed, err := n.List(r.At)
		if err != nil {
			errs = append(errs, err)
			r.Silent[n.ID] = true
			r.miss.Add(model.Unavailable{What: fmt.Sprintf("listeners in network namespace %d", n.ID), Why: err.Error()})
			continue
		}
		r.all = append(r.all, candidates(listed)...)
		if unread := n.Unread(); unread > 0 {
			r.Omitted += unread
			crowded++
		}
	}
	if crowded > 0 {
		r.miss.Add(model.Unavailable{
			What: phrase.Count(r.Omitted, "listener") + " of " + phrase.Count(crowded, "network namespace"),
			Why:  "there are too many to be read; those that are watched or named by --port are",
		})
	}
	if len(errs) > 0 && len(errs) == len(r.Lister.Namespaces.All) {
		return errors.Join(errs...)
	}
	return nil
}

func candidates(listed []namespace.Listed) []*Candidate {
	ids, listeners := make([]model.ListenerID, len(listed)), make([]sockdiag.Listener, len(listed))
	for i := range listed {
		ids[i], listeners[i] = listed[i].ID, listed[i].Listener
	}
	return Group(ids, listeners)
}

// restPer is how long a process's limits rest for each process that has some: to
// check whether they still hold takes a tenth of a millisecond.
const restPer = 100 * time.Millisecond

// byProcess are all listeners of the processes that have one which may be wanted:
// which of a process's ports is the connector's only all of them together can show.
func (r *listing) byProcess() map[hostproc.ProcessKey][]*Candidate {
	out := make(map[hostproc.ProcessKey][]*Candidate)
	wanted := make(map[hostproc.ProcessKey]bool)
	for _, c := range r.all {
		if c.Owner != nil {
			key := hostproc.ProcessKey{PID: c.Owner.PID, StartTime: c.Owner.StartTime}
			out[key] = append(out[key], c)
			wanted[key] = wanted[key] || r.rules.MaySelect(c)
		}
	}
	maps.DeleteFunc(out, func(key hostproc.ProcessKey, _ []*Candidate) bool { return !wanted[key] })
	return out
}

// findConnectors asks once per process what stands behind its listeners.
func (r *listing) findConnectors(ctx context.Context, patience time.Duration) {
	byProcess := r.byProcess()
	rest := max(r.opt.ScanInterval/2, time.Duration(len(byProcess))*restPer)
	if patience > 0 {
		rest = 0
		for key, list := range byProcess {
			r.Connectors.of(key, ports(list), rest)
		}
		r.Connectors.wait(ctx, patience)
		rest = time.Hour
	}
	for key, list := range byProcess {
		found, unavailable := r.Connectors.of(key, ports(list), rest)
		for _, c := range list {
			c.Discovered = found[c.ID.Address].Times(c.Processes)
			c.Unavailable = unavailable
		}
	}
	r.Connectors.forget()
	r.askActuators(ctx)
}

// askActuators asks the given Actuators about the listeners of the agent's own
// namespace that no process of this /proc holds. They may answer on a port that
// nobody asked for.
func (r *listing) askActuators(ctx context.Context) {
	var list []*Candidate
	for _, c := range r.all {
		if n := r.Lister.Namespaces.Find(c.ID.NetNS); c.Owner == nil && n != nil && n.OfAgent {
			list = append(list, c)
		}
	}
	if r.Sources.Discovery == nil || len(r.opt.Actuators()) == 0 || !slices.ContainsFunc(list, r.rules.MaySelect) {
		return
	}
	found, unavailable := r.Sources.Discovery.DiscoverUnseen(ctx, ports(list))
	for _, c := range list {
		c.Discovered = found[c.ID.Address]
	}
	r.miss.Add(unavailable...)
}

func ports(list []*Candidate) []match.Listening {
	out := make([]match.Listening, len(list))
	for i, c := range list {
		out[i] = match.Listening{Port: c.Port(), Address: c.ID.Address.Addr(), SendQ: int(c.Worst().SendQ)}
	}
	return out
}

// selectWatched leaves out what the targets do not name and what is beyond
// --max-listeners, and has the others watched.
func (r *listing) selectWatched() {
	selected, note := r.rules.Select(r.all)
	if note != "" {
		r.Notes = append(r.Notes, note)
	}
	if most := r.opt.MaxListeners; most > 0 && len(selected) > most {
		r.Omitted += len(selected) - most
		selected = r.fairShares(selected, most)
	}
	r.watch(selected)
	// Which ports are served is known by now.
	r.rules.Scope = r.Lister.Namespaces.scope(r.opt, r.Silent, r.OneShot)
	targets, notes := r.rules.Expected(r.all)
	r.Targets, r.Notes = targets, append(r.Notes, notes...)
	r.Infos = r.rules.Infos(r.opt.Labels, selected)
}

// fairShares are the candidates that are watched when there are too many: no owner and no
// namespace displaces another's, and nothing new what is watched already.
func (r *listing) fairShares(list []*Candidate, most int) []*Candidate {
	owners, watched := make(map[uint64]string), make(map[model.ListenerID]bool)
	for _, n := range r.Lister.Namespaces.All {
		owners[n.ID] = n.Owner
		for _, id := range n.Watched() {
			watched[id] = true
		}
	}
	claimants := make([]Claimant, len(list))
	for i, c := range list {
		claimants[i] = Claimant{Owner: owners[c.ID.NetNS], NetNS: c.ID.NetNS, User: c.Members[0].UID, Explicit: c.Expected(), Watched: watched[c.ID]}
	}
	out := make([]*Candidate, 0, most)
	for _, i := range Shares(claimants, most) {
		out = append(out, list[i])
	}
	return out
}

// watch gives the samples what is kept; of a namespace that did not answer, those
// of its latest answer stay.
func (r *listing) watch(selected []*Candidate) {
	lists := make(map[uint64][]namespace.Listening)
	for _, c := range selected {
		n := r.Lister.Namespaces.Find(c.ID.NetNS)
		if err := n.Follow(r.At); err != nil {
			r.miss.Add(model.Unavailable{What: fmt.Sprintf("counters of network namespace %d", n.ID), Why: err.Error()})
			continue
		}
		if c.Expected() || r.opt.Remember && c.Discovered.Kind().Limits {
			n.Served[c.Port()] = true
		}
		if r.rules.everything(n.ID) && serves(c) {
			n.Seen[c.Port()] = namespace.Seen{At: r.At, User: c.Members[0].UID}
		}
		lists[n.ID] = append(lists[n.ID], namespace.Listening{ID: c.ID, Members: c.Members})
		r.watched = append(r.watched, c)
		r.Watched = append(r.Watched, facts.Watched{Listening: &c.Listening, Expected: c.Expected(), Connector: c.Limits(r.opt.Limits).Apply(c.Discovered)})
	}
	for _, n := range r.Lister.Namespaces.All {
		forgetSeen(n.Seen, r.At)
		if !r.Silent[n.ID] && n.Open() {
			n.Watch(r.At, lists[n.ID])
		}
	}
}

// serves reports whether a listener is a server's that clients will ask for when it has ended: one whose limits are
// known, or a JVM's, which may end before it has been examined.
func serves(c *Candidate) bool {
	return c.Discovered.Kind().Limits || c.Owner != nil && c.Owner.Comm == javaComm
}

// retire takes over the totals of namespaces that are closed.
func (r *listing) retire() {
	p := r.Lister.Namespaces
	p.Retired.Expire(r.At)
	for _, n := range p.All {
		n.Books(func(b *losses.Books) {
			p.Retired.Remove(func(a *losses.Account) bool { return b.Accounts()[a.ID] != nil })
		})
	}
	list := slices.Clone(p.Retired.Accounts())
	losses.LatestFirst(list)
	list = losses.InTurns(list, func(a **losses.Account) (uint64, uint32) { return (*a).ID.NetNS, (*a).User })
	if most := r.opt.MaxListeners; most > 0 && len(list) > most {
		list = list[:most]
		p.Retired.Remove(func(a *losses.Account) bool { return !slices.Contains(list, a) })
	}
	for _, a := range list {
		r.Retired = append(r.Retired, facts.ClosedTotals{LastSeen: a.LastSeen, User: a.User, RetainedTotals: a.Retain()})
	}
}
