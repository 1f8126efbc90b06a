package observer

import (
	"maps"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// publish turns a scan into a snapshot: it hands the watches to the fast loop,
// settles the causes of the drops, judges, and lets readers have the result.
func (s *Sampler) publish(sc *scan) {
	snap := &model.Snapshot{
		Time: sc.at, Host: s.host, Kernel: s.kernel,
		Omitted: sc.omitted, Targets: s.expectedPorts(sc), TargetInfos: s.targetInfos(sc.kept),
	}
	snap.Notes = sc.notes
	rest := max(seldom, time.Duration(len(bySpace(sc.kept)))*sysctlRest)
	for _, sp := range s.spaces {
		if sp.awake() {
			sp.readSysctls(sc.at, rest, s.src.Proc.Sysctls)
			sp.readSockstat()
		}
	}
	s.countOutgoing(sc)
	for _, c := range sc.kept {
		snap.Listeners = append(snap.Listeners, s.listener(sc, c))
	}
	s.countReset(sc, snap)

	s.mu.Lock()
	s.rewatch(sc)
	s.countAbandoned(sc)
	for i := range snap.Listeners {
		sc.kept[i].space.book(sc.kept[i].account, &snap.Listeners[i], s.scans)
	}
	snap.Gone = s.retire(sc)
	snap.Self = s.self
	snap.Self.SourceUp = s.sources()
	s.mu.Unlock()

	for _, t := range snap.Targets {
		if !t.Up {
			snap.Listeners = append(snap.Listeners, s.absent(t))
		}
	}
	for _, sp := range s.spaces {
		if sp.awake() && !sc.mute[sp] {
			snap.NetNS = append(snap.NetNS, sp.netns())
			snap.Interval = max(snap.Interval, sp.interval())
		}
	}
	s.rememberClosed(snap)
	for i := range snap.Listeners {
		var a *account
		if i < len(sc.kept) {
			a = sc.kept[i].account
		}
		s.judge(&snap.Listeners[i], a, snap)
	}
	snap.Unavailable = sc.miss.list
	s.published.Store(snap)
}

// listener converts what one scan saw.
func (s *Sampler) listener(sc *scan, c *candidate) model.Listener {
	worst, g := c.worst(), sc.gathered[c]
	l := model.Listener{
		ID: c.id, Port: c.port(), Inode: worst.Inode, Members: len(c.members),
		Expected:    c.expected(),
		Connector:   s.limits(c).apply(c.connector),
		AcceptQueue: &model.AcceptQueue{Length: int(worst.RecvQ), Limit: int(worst.SendQ)},
	}
	if worst.HasDrops {
		l.AcceptQueue.SocketDrops = new(c.drops())
	}
	if !g.connections.Partial { // a part of the queues says nothing of the rest
		l.SynBacklog = &model.SynBacklog{Length: g.synBacklog, Limit: int(worst.SendQ)}
	}
	if g.queued > 0 && !g.connections.Partial {
		l.AcceptQueue.OldestWait = &g.oldest
	}
	if c.owner != nil {
		l.Process = sc.processes[c.owner.PID]
	}
	conn := g.connections
	attend(&conn, g.lingering, l.Connector)
	unclassify(&conn, l.Connector)
	l.Connections = &conn
	sayUnclassified(sc, &l)
	return l
}

func (c *candidate) drops() (sum uint64) {
	for i := range c.members {
		sum += uint64(c.members[i].Drops)
	}
	return sum
}

func sayUnclassified(sc *scan, l *model.Listener) {
	if l.Connector != nil && (l.Connector.TLS || l.Connector.HTTP2) {
		sc.miss.add(model.Unavailable{
			What: "idle and in-service connections of " + l.ID.String(),
			Why:  "TLS or HTTP/2: the kernel sees bytes, not requests",
			How:  "Actuator's tomcat.threads.busy (server.tomcat.mbeanregistry.enabled=true)",
		})
	}
}

// rewatch gives the fast loop the listeners of this scan. Of a namespace that did
// not tell them, those of the latest scan stay.
func (s *Sampler) rewatch(sc *scan) {
	kept := bySpace(sc.kept)
	for _, sp := range s.spaces {
		if !sp.awake() || sc.mute[sp] {
			continue
		}
		sp.migrates = sp.sysctl["tcp_migrate_req"] == 1
		var next []watch
		for _, c := range kept[sp] {
			w := watch{account: c.account, members: make([]member, len(c.members))}
			for i := range c.members {
				w.members[i].ask, w.members[i].inode = c.members[i].ListenerID, c.members[i].Inode
				w.members[i].observe(&c.members[i])
			}
			w.fold()
			next = append(next, w)
		}
		sp.replace(sc.at, next)
		if n := len(sp.past); n > 0 {
			sp.past[n-1].strangers = sp.strangers()
		}
	}
}

// book settles a listener's account with what this scan saw, and takes from it
// what happened in the window.
func (sp *space) book(a *account, l *model.Listener, scanNumber int) {
	base, now := sp.past[0], sp.past[len(sp.past)-1]
	a.lastSeen, a.absent = now.at, false
	a.settle(func(former bool) model.Cause { return sp.cause(a, l, former) })
	a.ledger.close(scanNumber, base.scan)
	l.AcceptQueue.Recent = max(a.peaks.takeRecent(), l.AcceptQueue.Length)
	if length, when, ok := a.peaks.highest(now.at); ok && len(sp.past) > 1 {
		// The scan itself is a sample, too: never show a peak below the length.
		if length < l.AcceptQueue.Length {
			length, when = l.AcceptQueue.Length, now.at
		}
		l.AcceptQueue.Peak, l.AcceptQueue.PeakAge = &length, max(0, now.at.Sub(when))
	}
	if len(sp.past) > 1 {
		l.Losses = a.ledger.since(base.scan)
		if l.Losses.DroppedPackets > 0 {
			l.Losses.Burst = a.ledger.burst(sp.past)
		}
		if sp.sole(base, now) {
			l.Losses.Unattributed = now.unattributed - base.unattributed
			l.Losses.DroppedPackets += l.Losses.Unattributed
		}
		l.Losses.WorstCase = diagnosis.WorstCase(l.Losses, sp.delta, sp.sysctl)
	}
	l.Totals = a.totals()
}

// sole says that what could not be attributed can only be the one listener's
// that is watched: no other socket of the namespace counted a drop.
func (sp *space) sole(base, now checkpoint) bool {
	return len(sp.watches) == 1 && base.strangers == now.strangers
}

// cause judges from the looks on both sides of the drops; of the drops of a
// listener that has closed since and of which there is another now, from the
// last one at it.
func (sp *space) cause(a *account, now *model.Listener, former bool) model.Cause {
	before := a.looks.last
	if former && a.former.Listener != nil {
		before, now = a.former, a.former.Listener
	}
	elapsed := sp.past[len(sp.past)-1].at.Sub(before.at)
	// The packets of the SYN queue are told apart already: no counters.
	return diagnosis.DropCause(before.Listener, now, elapsed, losses.NamespaceDelta{}, sp.thresholds)
}

// absent is the entry of an expected port on which nothing listens, with what
// its last listener's clients lost.
func (s *Sampler) absent(t model.Target) model.Listener {
	l := model.Listener{ID: model.ListenerID{NetNS: t.NetNS}, Port: t.Port, Expected: true}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.spaces {
		if uint64(sp.id) != t.NetNS || len(sp.past) < 2 {
			continue
		}
		l.Losses = &model.Losses{}
		for id, a := range sp.accounts {
			if id.Address.Port() == t.Port {
				lost := a.ledger.since(sp.past[0].scan)
				l.Losses.By = append(l.Losses.By, lost.By...)
				l.Losses.DroppedPackets += lost.DroppedPackets
				l.Losses.QueueResets += lost.QueueResets
				l.Losses.AbandonedRequests += lost.AbandonedRequests
			}
		}
		l.Losses.WorstCase = append(diagnosis.WorstCase(l.Losses, nil, sp.sysctl), diagnosis.SeenRefused)
	}
	return l
}

// netns converts a namespace's counters.
func (sp *space) netns() model.NetNS {
	now := sp.past[len(sp.past)-1]
	return model.NetNS{
		ID: uint64(sp.id), Counters: now.counters, Delta: sp.delta, Unattributed: now.unattributed,
		Sysctl: maps.Clone(sp.sysctl), Sockstat: sp.sockstat,
	}
}

func (sp *space) interval() time.Duration {
	if len(sp.past) == 0 {
		return 0
	}
	return sp.past[len(sp.past)-1].at.Sub(sp.past[0].at)
}

// lastDelta is how far a counter moved since the previous scan.
func (sp *space) lastDelta(name string) uint64 {
	n := len(sp.past)
	if n < 2 {
		return 0
	}
	return sp.past[n-1].counters.Sub(sp.past[n-2].counters)[name]
}

// seldom is how often that is read again which hardly ever changes: the
// namespace's sysctls and the processes' limits, a fifth of a scan's work.
const seldom = 10 * time.Second

// sysctlRest makes it longer where there are many namespaces: to enter one and
// read its dozen files (0.16 ms) takes a tenth of a per cent of a core so.
const sysctlRest = 200 * time.Millisecond

func (sp *space) readSysctls(now time.Time, rest time.Duration, read func() (map[string]int, error)) {
	if sp.sysctl != nil && now.Sub(sp.sysctlAt) < rest {
		return
	}
	sp.sysctlErr = sp.inside(func() error {
		values, err := read()
		if err == nil {
			sp.sysctl, sp.sysctlAt = values, now
		}
		return err
	})
}

// readSockstat reads once what a scan needs in several places; nil where it
// cannot be read.
func (sp *space) readSockstat() {
	stat, err := sp.socks.Read()
	if sp.sockstat = stat; err != nil {
		sp.sockstat = nil
	}
}
