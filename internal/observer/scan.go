package observer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// scan is what one slow look has gathered so far.
type scan struct {
	at        time.Time
	all       []*candidate    // every listener of every namespace
	mute      map[*space]bool // namespaces that did not tell their listeners
	kept      []*candidate    // those the targets name
	omitted   int             // of kept, beyond --max-listeners
	processes map[int]*model.Process
	gathered  map[*candidate]*gathered
	denied    []owner.Denied
	searched  map[int]bool                // named processes whose descriptors could be read
	unread    map[int][]model.Unavailable // what discovery could not see, by process
	notes     []string
	miss      missing
}

// Scan looks at everything once and publishes what it saw. It fails only when
// the kernel cannot be asked for its listeners; whatever else is missing is
// named in the snapshot.
func (s *Sampler) Scan(ctx context.Context) error {
	start := s.opt.Now()
	away := s.away()
	s.aside = 0
	cost, err := cpuTime(func() error { return s.scan(ctx, start) })
	s.cost = cost + s.away() - away - s.aside
	if err != nil {
		if ctx.Err() == nil {
			s.blind()
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.self.ScanSeconds.Observe(s.opt.Now().Sub(start))
	return nil
}

// away is the CPU time that was spent inside other namespaces so far.
func (s *Sampler) away() time.Duration { return time.Duration(s.common.away.Load()) }

func (s *Sampler) scan(ctx context.Context, start time.Time) error {
	sc, err := s.look(ctx, start)
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	s.publish(sc)
	return nil
}

// look takes in everything; the fast loop goes on meanwhile.
func (s *Sampler) look(ctx context.Context, start time.Time) (*scan, error) {
	sc := &scan{at: start, processes: make(map[int]*model.Process), gathered: make(map[*candidate]*gathered), unread: make(map[int][]model.Unavailable), searched: make(map[int]bool), mute: make(map[*space]bool)}
	s.scans++
	s.discover(sc)
	if err := s.findListeners(sc); err != nil {
		return nil, err
	}
	s.findOwners(sc)
	s.claim(sc)
	s.findConnectors(ctx, sc)
	s.keep(sc)
	if s.scans == 1 {
		s.watchEarly(sc)
	}
	s.lookAtOwners(sc)
	if err := s.walkSockets(sc); err != nil {
		return nil, err
	}
	return sc, ctx.Err()
}

// findListeners takes a checkpoint of every namespace: its counters first,
// then its listeners, with the drops since the last time attributed.
func (s *Sampler) findListeners(sc *scan) error {
	var errs []error
	for _, sp := range s.spaces {
		listeners, err := s.glance(sp, sc.at)
		if err != nil {
			errs = append(errs, err)
			sc.mute[sp] = true
			sc.miss.add(model.Unavailable{What: fmt.Sprintf("listeners in network namespace %d", sp.id), Why: err.Error()})
			continue
		}
		sc.all = append(sc.all, group(sp, listeners)...)
	}
	s.dumped = len(errs) == 0
	if len(errs) == len(s.spaces) {
		return errors.Join(errs...)
	}
	return nil
}

// glance takes a checkpoint of a namespace, or only its listeners where nothing is
// watched and it was not asked for.
func (s *Sampler) glance(sp *space, now time.Time) ([]sockdiag.Listener, error) {
	if !sp.idle() {
		return s.checkpoint(sp, now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = sp.sleep() // nothing can be done about it
	if err := sp.collect(); err != nil {
		return nil, err
	}
	return slices.Clone(sp.found), nil
}

// checkpoint holds the lock against the fast loop: the namespace's counters
// must not be read, and attributed, out of order.
func (s *Sampler) checkpoint(sp *space, now time.Time) ([]sockdiag.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := sp.waken(s.src); err != nil {
		return nil, err
	}
	counters := make(model.Counters, 24)
	var c hostproc.ListenCounters
	torn, err := sp.readDrops(&c, func() error {
		if err := sp.counters.Read(counters); err != nil {
			return err
		}
		c = hostproc.ListenCounters{
			ListenDrops: counters["ListenDrops"], ListenOverflows: counters["ListenOverflows"],
			ReqQFullDrop: counters["TCPReqQFullDrop"], ReqQFullDoCookies: counters["TCPReqQFullDoCookies"],
			SyncookiesRecv: counters["SyncookiesRecv"],
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sp.attribute(counts(c, torn))
	sp.remember(checkpoint{scan: s.scans, at: now, counters: counters, unattributed: sp.unattributed}, s.opt.Window)
	for _, a := range sp.accounts {
		a.fallDue()
	}
	return slices.Clone(sp.found), nil
}

// remember keeps the checkpoints of the window and the one before it, and what
// the counters gained over them.
func (sp *space) remember(c checkpoint, window time.Duration) {
	sp.past = append(sp.past, c)
	first := 0
	for first+2 < len(sp.past) && c.at.Sub(sp.past[first+1].at) >= window {
		first++
	}
	sp.past = slices.Delete(sp.past, 0, first)
	sp.delta = nil
	if len(sp.past) > 1 {
		sp.delta = c.counters.Sub(sp.past[0].counters)
	}
}

// findConnectors asks once per process what stands behind its listeners.
func (s *Sampler) findConnectors(ctx context.Context, sc *scan) {
	byPID := make(map[int][]*candidate)
	for _, c := range sc.all {
		if c.owner != nil && s.mayWant(c) {
			byPID[c.owner.PID] = append(byPID[c.owner.PID], c)
		}
	}
	for pid, list := range byPID {
		connectors, unavailable := s.src.Tomcat.Discover(ctx, pid, list[0].owner.StartTime, listeningPorts(list))
		for _, c := range list {
			c.connector = connectors[c.id.Address]
		}
		sc.unread[pid] = unavailable
	}
	s.findUnseen(ctx, sc)
}

// findUnseen asks the given Actuators about the listeners of the agent's own
// namespace that no process of this /proc holds. They may answer on a port that
// nobody asked for.
func (s *Sampler) findUnseen(ctx context.Context, sc *scan) {
	var list []*candidate
	for _, c := range sc.all {
		if c.owner == nil && c.space.ns == nil {
			list = append(list, c)
		}
	}
	if !slices.ContainsFunc(list, s.mayWant) {
		return
	}
	connectors, unavailable := s.src.Tomcat.DiscoverUnseen(ctx, listeningPorts(list))
	for _, c := range list {
		c.connector = connectors[c.id.Address]
	}
	for _, u := range unavailable {
		sc.miss.add(u)
	}
}

func listeningPorts(list []*candidate) []discovery.Listening {
	ports := make([]discovery.Listening, len(list))
	for i, c := range list {
		ports[i] = discovery.Listening{Port: c.port(), Address: c.id.Address.Addr(), SendQ: int(c.worst().SendQ)}
	}
	return ports
}

// keep drops what the targets do not name and what is beyond --max-listeners.
func (s *Sampler) keep(sc *scan) {
	kept, note := s.wanted(sc)
	if note != "" {
		sc.notes = append(sc.notes, note)
	}
	order(kept)
	if s.opt.MaxListeners > 0 && len(kept) > s.opt.MaxListeners {
		sc.omitted = len(kept) - s.opt.MaxListeners
		kept = kept[:s.opt.MaxListeners]
	}
	kept = slices.DeleteFunc(slices.Clone(kept), func(c *candidate) bool { return !s.follow(c.space, sc) })
	sc.kept = kept
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range sc.all {
		if a, ok := c.space.accounts[c.id]; ok {
			a.dismissed = true // what is kept is called back
		}
	}
	for _, c := range kept {
		c.account = c.space.account(c.id)
		c.account.dismissed = false
		c.account.meet(c, sc.at)
		c.space.serve(c)
	}
}

// follow makes sure that the counters of a namespace are followed from now on.
func (s *Sampler) follow(sp *space, sc *scan) bool {
	if sp.awake() {
		return true
	}
	_, err := s.checkpoint(sp, sc.at)
	if err != nil {
		sc.miss.add(model.Unavailable{What: fmt.Sprintf("counters of network namespace %d", sp.id), Why: err.Error()})
	}
	return err == nil
}

// watchEarly lets the fast loop begin before the first walk of the table, which
// takes its time where there are many connections.
func (s *Sampler) watchEarly(sc *scan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rewatch(sc)
}

// walkSockets fails only when no namespace can be walked; the counts of one that
// cannot are marked partial.
func (s *Sampler) walkSockets(sc *scan) error {
	kept, all := bySpace(sc.kept), bySpace(sc.all)
	var errs []error
	s.walked = true
	for _, sp := range s.spaces {
		if len(kept[sp]) == 0 {
			continue
		}
		found, err := sp.walk(sc.at, kept[sp], all[sp])
		if err != nil {
			errs = append(errs, err)
			sc.miss.add(model.Unavailable{What: fmt.Sprintf("connections in network namespace %d", sp.id), Why: err.Error()})
		}
		for c, g := range found {
			sc.gathered[c] = g
			s.walked = s.walked && !g.connections.Partial
		}
	}
	if len(errs) > 0 && len(errs) == len(kept) {
		return errors.Join(errs...)
	}
	return nil
}

func bySpace(list []*candidate) map[*space][]*candidate {
	out := make(map[*space][]*candidate)
	for _, c := range list {
		out[c.space] = append(out[c.space], c)
	}
	return out
}
