package namespace

import (
	"errors"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Exact requests in one send (0.5 µs, and 0.9 µs for each watched listener) are
// cheaper than a LISTEN dump (13 µs, and 0.2 µs for every listener of the
// namespace) up to exactLimit of them and one more for every dumpShare that are
// there.
const (
	exactLimit = 13
	dumpPart   = 5
)

// redialAfter is how many samples in a row may fail before they are made through
// a new socket.
const redialAfter = 3

// Alarm is what a sample has found that others should know at once.
type Alarm struct {
	Dropped bool // a listener's drop counter moved
	Filled  bool // an accept queue has become full
	Lost    bool // a listener closed, an exact request does not find it, or its drops wait for a list
	Failed  bool // the kernel did not answer
	Calm    bool // all accept queues have been empty for a while, with nothing dropped
}

// Any reports whether there is anything to know.
func (a Alarm) Any() bool { return a.Dropped || a.Filled || a.Lost || a.Failed }

// And joins what two namespaces' samples have found.
func (a Alarm) And(b Alarm) Alarm {
	return Alarm{a.Dropped || b.Dropped, a.Filled || b.Filled, a.Lost || b.Lost, a.Failed || b.Failed, a.Calm && b.Calm}
}

// fast is what a sample needs: reused, so that it allocates nothing.
type fast struct {
	asks     []sockdiag.Ask
	asked    []int // whose each of asks is, by index in watches
	answer   func(int, *sockdiag.Listener, error)
	lost     bool // it takes a dump: an exact request did not find its listener
	shadowed bool // and had found it before
	failures int  // in a row

	dump func() error                              // dumpWatched
	cost func(func() error) (time.Duration, error) // of CPU time
	next time.Time                                 // when a dump may be made again for a sample
	owed bool                                      // drops have yet to be split

	dumps    bool          // samples take dumps, or the splitting of drops does
	calm     time.Time     // who was not active since is not asked for
	skipped  bool          // a listener that is not closed was not asked for
	gapLimit time.Duration // of the latest sample
	listed   Alarm         // what a list has found that is a sample, too
}

const (
	// dumpRest is how much longer than a dump for a sample took it is until the next one, where one namespace takes any: who has
	// thousands of listeners in a namespace, or in many, keeps the samples of all others waiting for that time.
	dumpRest = 10
	// tooLong is a dump of some ten thousand listeners: where it takes that, none is made for a sample. A list is the sample of who is not
	// asked for alone, and splits what was dropped.
	tooLong = 10 * time.Millisecond
)

// sampler makes the samples of a namespace. Only who has the turn (Shared) asks the kernel, and
// then holds no lock: replies are noted, and taken in under mu when all have come. So watches are
// written with both, and read with either; what is heard or dumped needs the turn alone, and all
// else mu alone.
type sampler struct {
	id     uint64
	kernel Kernel
	crowds *crowds
	// readAll is Kernel.Listeners, for who keeps the turn.
	readAll reading

	mu      sync.Mutex
	expects func(model.ListenerID) bool // sure to be watched once it listens
	watches watches
	books   *losses.Books
	dump    dump
	fast    fast
	facts   rarely

	counters model.Counters // of a checkpoint, reused
	active   time.Time      // when a sample last found anything but empty queues, or a listener came behind a pause
	came     time.Time      // when the latest one did
}

// newSampler makes the callbacks values once: a closure a tick would be garbage
// a tick.
func newSampler(id uint64, kernel Kernel, crowds *crowds, window time.Duration) *sampler {
	s := &sampler{
		id: id, kernel: kernel, crowds: crowds, books: losses.NewBooks(window), counters: make(model.Counters, 24),
		expects: func(model.ListenerID) bool { return false },
	}
	s.fast.cost, s.fast.dump = cputime.Of, s.dumpWatched
	s.readAll, s.dump.pass = s.kernel.Listeners, s.onePass
	s.dump.forget, s.dump.collect, s.dump.take, s.fast.answer = s.forgetListeners, s.collectListener, s.takeListener, s.answered
	return s
}

// sample asks for every watched listener, where all have their turn, else for those that are not calm; and splits the namespace's drops when
// a listener's own counter moved. It allocates nothing and writes no log line.
func (s *sampler) sample(now time.Time, gapLimit time.Duration, all bool) Alarm {
	if len(s.watches.list) == 0 {
		s.takesDumps(false)
		return Alarm{}
	}
	if s.fast.calm = now.Add(-calmAfter); all {
		s.fast.calm = time.Time{}
	} else if !s.fast.owed && !s.watches.anyActive(s.fast.calm) {
		return Alarm{}
	}
	s.watches.resetSeen()
	s.fast.lost, s.fast.shadowed, s.fast.skipped, s.fast.gapLimit = false, false, false, gapLimit
	late := s.dump.cost >= tooLong
	rests := late || now.Before(s.fast.next)
	dumped, err := s.ask(now, rests)
	alarm := s.takeSample(now, gapLimit, dumped)
	s.fast.owed = s.fast.owed || alarm.Dropped
	alarm.Dropped, alarm.Filled = alarm.Dropped || s.fast.listed.Dropped, alarm.Filled || s.fast.listed.Filled
	s.fast.listed = Alarm{}
	if s.fast.owed && !rests {
		dumped = true
		err = errors.Join(err, s.splitDrops(now))
		s.spent(now, s.dump.cost)
	}
	if !dumped && (late || !rests) {
		s.takesDumps(false)
	}
	alarm.Lost = alarm.Lost || s.fast.shadowed || late && (s.fast.owed || s.fast.skipped)
	alarm.Failed = s.recover(err)
	if alarm.Any() || s.watches.queued() {
		s.active = now
	}
	if alarm.Failed {
		s.mu.Lock()
		s.watches.wake(now, true)
		s.mu.Unlock()
	}
	return alarm
}

// spent has the next dump for a sample wait where one was expensive, or those of all namespaces together.
func (s *sampler) spent(now time.Time, cost time.Duration) {
	s.takesDumps(true)
	all := cost * time.Duration(s.crowds.dumping)
	if all < expensive {
		return
	}
	if s.fast.next.Before(now) {
		s.fast.next = now
	}
	s.fast.next = s.fast.next.Add(dumpRest * all)
}

// takesDumps counts the namespaces whose samples do.
func (s *sampler) takesDumps(dumps bool) {
	switch was := s.fast.dumps; {
	case dumps && !was:
		s.crowds.dumping++
	case was && !dumps:
		s.crowds.dumping--
	}
	s.fast.dumps = dumps
}

func (s *sampler) ask(now time.Time, rests bool) (dumped bool, err error) {
	if exact := s.watches.exact(s.dump.there, s.fast.calm); exact || rests {
		if err := s.askEach(); err != nil {
			return false, err
		}
		s.fast.lost = s.fast.lost || !exact
	} else {
		s.fast.lost = true
	}
	if !s.fast.lost || rests {
		return false, nil
	}
	cost, err := s.fast.cost(s.fast.dump)
	s.spent(now, cost)
	return err == nil, err
}

// takeSample takes in what was heard. dumped: who was not heard has closed.
func (s *sampler) takeSample(now time.Time, gapLimit time.Duration, dumped bool) (alarm Alarm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.watches.list {
		alarm.Dropped = s.watches.list[i].take(now) || alarm.Dropped
	}
	if dumped {
		alarm.Lost = s.watches.miss(now, s.facts.migrates())
	}
	for i := range s.watches.list {
		if w := &s.watches.list[i]; w.anySeen() { // else the kernel did not answer: no sample
			alarm.Filled = w.sampled(now, gapLimit) || alarm.Filled
		}
	}
	return alarm
}

// recover counts the samples that failed, and after some in a row asks through
// a new socket.
func (s *sampler) recover(err error) (failed bool) {
	s.mu.Lock()
	if s.fast.failures++; err == nil {
		s.fast.failures = 0
	}
	s.mu.Unlock()
	if err == nil {
		return false
	}
	if s.fast.failures%redialAfter == 0 {
		_ = s.kernel.Redial() // the next samples show whether it helped
	}
	return true
}

// askEach asks for those that are alone, and not calm where it is not their turn.
func (s *sampler) askEach() error {
	s.fast.asks, s.fast.asked = s.fast.asks[:0], s.fast.asked[:0]
	for i := range s.watches.list {
		w := &s.watches.list[i]
		switch {
		case w.closed(), w.active.Before(s.fast.calm):
		case !w.alone():
			s.fast.skipped = true
		default:
			s.fast.asks = append(s.fast.asks, sockdiag.Ask{ID: w.members[0].ask, Inode: w.members[0].inode})
			s.fast.asked = append(s.fast.asked, i)
		}
	}
	return s.kernel.Lookup(s.fast.asks, s.fast.answer) // what was not answered has no sample
}

// answered is askEach's callback. When nobody answers, or another socket does,
// the listener may have closed; or one has joined its address since the latest
// watchlist (SO_REUSEPORT), or a program redirects the lookup (BPF_SK_LOOKUP). Only
// a dump can show that, and it is asked until the next watchlist.
func (s *sampler) answered(i int, l *sockdiag.Listener, err error) {
	m := &s.watches.list[s.fast.asked[i]].members[0]
	switch {
	case err == nil:
		m.hear(l)
	case errors.Is(err, sockdiag.ErrNotFound):
		m.shadowed, s.fast.lost = true, true
		s.fast.shadowed = s.fast.shadowed || !m.suspect
	}
}

// Sample makes a sample of every watched listener; of those that are calm only where it
// is the namespace's turn. It takes no lock that a reader of snapshots could hold.
func (n *Namespace) Sample(now time.Time, gapLimit time.Duration, turn bool) (alarm Alarm) {
	n.shared.turn.Lock()
	defer n.shared.turn.Unlock()
	if !n.closed && (turn || !calm(n.active, now)) {
		alarm = n.sample(now, gapLimit, turn)
	}
	alarm.Calm = n.closed || calm(n.active, now)
	return alarm
}

func calm(active, now time.Time) bool { return now.Sub(active) > calmAfter }

// splitDrops reads the namespace's counters, then every listener's, and
// attributes what the namespace dropped since the last time. In that order: a
// drop between the two reads is then seen by the socket first and carried.
func (s *sampler) splitDrops(now time.Time) error {
	var c netstat.ListenCounters
	torn, err := s.readDrops(&c, s.readListenCounters, s.readAll)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeDump()
	s.books.Tick(now, counts(c, torn), s.dump.sockets)
	return nil
}

// wholeTries bounds how often the counters are read again, where a dump is not expensive.
const wholeTries = 3

// readDrops reads the namespace's counters by read, which fills in c, and then
// every listener's, again if something was dropped meanwhile: a drop that the
// sockets have and the namespace has not looks like a final ACK.
func (s *sampler) readDrops(c *netstat.ListenCounters, counters func(*netstat.ListenCounters) error, sockets reading) (torn bool, err error) {
	s.fast.owed = false
	for range wholeTries {
		if err := errors.Join(counters(c), s.dumpAll(sockets)); err != nil {
			return false, err
		}
		var after netstat.ListenCounters
		if err := s.kernel.ListenCounters(&after); err != nil {
			return false, err
		}
		if after.ListenDrops == c.ListenDrops {
			return false, nil
		}
		if s.dump.cost >= expensive {
			break
		}
	}
	return true, nil
}

func (s *sampler) readListenCounters(c *netstat.ListenCounters) error {
	return s.kernel.ListenCounters(c)
}

func counts(c netstat.ListenCounters, torn bool) losses.NamespaceCounts {
	return losses.NamespaceCounts{
		ListenDrops: c.ListenDrops, ListenOverflows: c.ListenOverflows,
		ReqQFullDrop: c.ReqQFullDrop, ReqQFullDoCookies: c.ReqQFullDoCookies,
		SyncookiesRecv: c.SyncookiesRecv, Torn: torn,
	}
}

// Readings are those of all watched listeners.
func (n *Namespace) Readings() []facts.Sampled {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.watches.readings()
}

// Facts are what is known of the namespace, but for what is counted.
func (n *Namespace) Facts() facts.Namespace {
	n.mu.Lock()
	defer n.mu.Unlock()
	return facts.Namespace{
		ID: n.ID, PID: n.PID, Answers: n.fast.failures < redialAfter, Sysctl: n.facts.sysctl, SysctlOK: n.facts.sysctlOK(), Sockstat: n.facts.sockstat,
		Missing: n.facts.missing, Sampled: n.watches.readings(), Counted: !n.closed && n.books.Open(),
	}
}

func (ws *watches) readings() []facts.Sampled {
	out := make([]facts.Sampled, len(ws.list))
	for i := range ws.list {
		w := &ws.list[i]
		drops, known := w.drops()
		out[i] = facts.Sampled{
			ID: w.account.ID, Inode: w.members[w.worst].inode,
			Queue: w.queue, Drops: drops, Known: known, Moved: w.moved, Full: w.full, Stands: w.stands, Taken: w.taken, Fell: w.fell, Still: w.still, Closed: w.closed(),
		}
	}
	return out
}
