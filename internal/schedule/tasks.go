package schedule

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/metronome"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// soonest is the shortest time between two steps of a clock other than the
	// samples, however much is happening.
	soonest = 100 * time.Millisecond
	// listPart is the part of a core that listing may take.
	listPart = 0.0015
	// changePart is the part of a core that listing may take where listeners come and go, as
	// long as a list is then made each maxListGap; where one takes long mostPart.
	changePart = 0.02
	maxListGap = time.Second
	mostPart   = 0.1
	// returnsIn is for how long a listener that has closed is looked for as where listeners come and go.
	returnsIn = 5 * time.Minute
	// arrivalsPart is the same while pods arrive: a name is to be there two seconds after its server.
	arrivalsPart = 0.05
	// arrivalsEvery is how often it is asked whether pods have arrived.
	arrivalsEvery = 250 * time.Millisecond
	// grace is how long the tasks may take to end.
	grace = time.Second
	// fresh is how often a snapshot is made while something is in trouble: what was
	// dropped is to be read within a second, by a client that asks in between.
	fresh = 500 * time.Millisecond
	// firstPatience is how long the first snapshot waits for the connections.
	firstPatience = time.Second
)

// tasks are the clocks, each in a goroutine of its own: none waits for another,
// nor for what one of them reads.
type tasks struct {
	scheduler *Scheduler
	metronome *metronome.Metronome
	err       error         // once all have ended
	walks     paces[uint64] // by namespace
	troubles  int           // namespaces in trouble, when one to read was last picked
	followed  int           // others where clients give up, then
	reads     paces[hostproc.ProcessKey]
	judges    paces[model.ListenerID]
	overdrawn time.Time     // the latest first reading of a process for which no CPU time was saved up
	patience  time.Duration // with the discoveries of the first watchlist that is published
	readings  int           // readings of what is in trouble, so far
	pending   atomic.Bool   // another reading of an acceptor may decide
	still     atomic.Bool   // a JVM may stand still
	watching  atomic.Bool   // a one-shot lasts until that is known
	ticking   atomic.Int64  // the metronome's interval in nanoseconds as the samples have set it, 0: they have not
}

// run lets them go until ctx is done, with an interval only that long from the first
// watchlist on (and until what keeps clients waiting is decided), or until listing fails for the first time. After an interval the readings
// under way that the next scan builds on are waited for: the first ones, and a watchlist.
// What else is held up is left behind.
func (t *tasks) run(ctx context.Context, interval time.Duration) error {
	s := t.scheduler
	begun := s.options().Now()
	s.begun.Store(&begun)
	s.started.Store(true)
	s.ended = make(chan struct{})
	within, stop := context.WithCancel(ctx)
	defer stop()
	g, clocks := errgroup.WithContext(within)
	named, listed, read, lists := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	g.Go(func() error { <-clocks.Done(); t.metronome.Stop(); return nil })
	g.Go(func() error { defer close(lists); return t.list(ctx, clocks, named, listed) })
	g.Go(func() error { return after(clocks, named, func() error { return t.sample(clocks) }) })
	g.Go(func() error { return after(clocks, listed, func() error { t.publish(clocks, read); return nil }) })
	g.Go(func() error {
		return after(clocks, listed, func() error { t.connections(ctx, clocks, read); return nil })
	})
	g.Go(func() error { return after(clocks, read, func() error { t.evidence(clocks); return nil }) })
	if interval > 0 {
		g.Go(func() error {
			return after(clocks, listed, func() error { pause(clocks, interval); t.extend(clocks); stop(); return nil })
		})
	}
	go func() {
		defer close(s.ended)
		t.err = g.Wait()
	}()
	<-clocks.Done()
	for _, done := range []chan struct{}{read, lists} {
		select {
		case <-done:
		case <-s.ended:
		case <-ctx.Done():
		}
	}
	select {
	case <-s.ended:
		return t.err
	case <-time.After(grace): // something is held up: it is left behind
		return nil
	}
}

// pause lasts for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// undecided is how long a one-shot waits for a reading of an acceptor that may name
// what keeps clients waiting: where it is not clear whether the JVM is at a safepoint the
// same sleep proves the latch after a second. As long it waits to see whether a JVM stands still that may.
const undecided = 1500 * time.Millisecond

// answersFor is how much longer a one-shot looks on while all seems well, clients wait for an answer or to be let in,
// and nobody who came meanwhile has been: whether they are is what it is asked for.
const answersFor = 5 * time.Second

// extend is the rest of a one-shot's time, beyond its interval.
func (t *tasks) extend(ctx context.Context) {
	begun := time.Now()
	if s := t.scheduler.Snapshot(); s != nil && mayBeOld(s) {
		t.scheduler.bells.publish.ring() // it may be of a second ago, when nobody was followed, or had come
		for t.scheduler.Snapshot() == s && ctx.Err() == nil && time.Since(begun) < undecided {
			pause(ctx, soonest)
		}
	}
	for ctx.Err() == nil {
		since := time.Since(begun)
		stands := since < undecided && t.still.Load() && unexplained(t.scheduler.Snapshot())
		if stands && !t.watching.Swap(true) {
			t.scheduler.bells.read.ring()
		}
		if !stands && (since >= undecided || !t.pending.Load()) && (since >= answersFor || !noneAnswered(t.scheduler.Snapshot())) {
			return
		}
		pause(ctx, soonest/2)
	}
}

// mayBeOld reports whether all seems well where requests are in hand, or where clients are followed and none was seen to be let in.
func mayBeOld(s *model.Snapshot) bool {
	return slices.ContainsFunc(s.Listeners, func(l model.Listener) bool {
		return l.Verdict.Status == model.StatusOK && (reading.Asked(&l) || l.Losses != nil && l.Losses.Clients != nil && l.Losses.Clients.LetIn == 0)
	})
}

// unexplained reports whether clients wait at a listener where all seems well, or no cause is named.
func unexplained(s *model.Snapshot) bool {
	return s != nil && slices.ContainsFunc(s.Listeners, func(l model.Listener) bool {
		return l.Verdict.Cause == model.CauseNone && (reading.Asked(&l) || reading.QueueWaits(&l))
	})
}

// noneAnswered reports whether all seems well with a listener of whose latest clients none has had an answer, or
// none has been let in.
func noneAnswered(s *model.Snapshot) bool {
	return s != nil && slices.ContainsFunc(s.Listeners, func(l model.Listener) bool {
		if l.Verdict.Status != model.StatusOK || l.Losses == nil || l.Losses.Clients == nil {
			return false
		}
		c := l.Losses.Clients
		return reading.Asked(&l) && c.NoneAnswered() > 0 || c.NoneLetIn() || standsUnanswered(&l)
	})
}

// standsUnanswered reports whether some requests are in service that came before clients were followed, and nobody else has come
// or had an answer since: it is not known whether anybody is answered.
func standsUnanswered(l *model.Listener) bool {
	c, clients := l.Connections, l.Losses.Clients
	return c != nil && clients.Answers.Known && clients.Begun == 0 && clients.Answers.Answered == 0 && clients.Flood == nil &&
		c.Phases[model.InService] >= standsLeast && c.InServiceFor+c.Age >= clients.Observed
}

// standsLeast is how many they are at least: fewer may be long polls.
const standsLeast = 3

// after runs fn once something is ready.
func after(ctx context.Context, ready <-chan struct{}, fn func() error) error {
	select {
	case <-ready:
		return fn()
	case <-ctx.Done():
		return nil
	}
}

// begin makes the watchlists that the clocks start with. named is closed once it is known
// which listeners are watched: what discovery finds says so only where no target is
// given. listed is closed when that has been waited for.
func (t *tasks) begin(ctx context.Context, named, listed chan<- struct{}) error {
	patience := []time.Duration{0, t.patience}
	if targets := t.scheduler.options().Selection(); targets.Empty() {
		patience = patience[1:]
	}
	for i := range patience {
		if err := t.scheduler.relist(ctx, patience[i]); err != nil {
			return err
		}
		if i == 0 {
			close(named)
		}
	}
	close(listed)
	return nil
}

// list makes the watchlists. It fails when the first one cannot be made.
func (t *tasks) list(first, ctx context.Context, named, listed chan<- struct{}) error {
	s := t.scheduler
	if err := t.begin(first, named, listed); err != nil {
		if first.Err() != nil {
			return nil
		}
		return fmt.Errorf("scan: %w", err)
	}
	due := time.Now().Add(s.options().ScanInterval)
	timer := time.NewTimer(s.nap(due))
	defer timer.Stop()
	ring, last, gap := s.bells.list, s.options().Now(), soonest
	var down facts.Down
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-s.changes:
			err := s.reconfigure(c.opt)
			if err == nil {
				t.retime()
				s.bells.list.ring()
			}
			c.done <- err
			continue
		case <-ring:
			if wait := gap - s.options().Now().Sub(last); wait > 0 {
				ring, due = nil, time.Now().Add(wait)
				timer.Reset(s.nap(due))
				continue
			}
		case <-timer.C:
			left := time.Until(due)
			if s.lister.Arrived() {
				left = min(left, gap-s.options().Now().Sub(last))
			}
			if left > 0 {
				timer.Reset(s.nap(time.Now().Add(left)))
				continue
			}
		}
		cost := t.listAgain(ctx)
		ring, last = s.bells.list, s.options().Now()
		settling, part := s.lister.Settling(last), changePart
		if settling {
			part = arrivalsPart
		}
		gap = listGap(cost, part)
		down = s.list.Load().Down(down)
		returning := len(down) > 0 && last.Sub(down.Latest()) < returnsIn
		due = time.Now().Add(max(s.options().ScanInterval, listRest(cost, gap, s.list.Load().Unnamed, returning)))
		if settling {
			due = time.Now().Add(max(gap, arrivalsEvery))
		}
		timer.Reset(s.nap(due))
	}
}

// listGap is the shortest time between two lists, as long as one takes that and may take that part of a core.
func listGap(cost time.Duration, part float64) time.Duration {
	return min(max(soonest, cputime.Rest(cost, 0, part)), cputime.Rest(cost, maxListGap, mostPart))
}

// listRest is how long the list that took that rests, where gap is the least. unnamed: a pod's name may be there in a second;
// returning: a listener that has closed lately may be back at any moment.
func listRest(cost, gap time.Duration, unnamed, returning bool) time.Duration {
	rest := min(cputime.Rest(cost, 0, listPart), calmRest)
	if unnamed {
		rest = min(rest, max(gap, maxListGap))
	}
	if returning {
		rest = min(rest, gap)
	}
	return rest
}

// nap is how long the list waits until it is due, or until it is looked for pods that have arrived.
func (s *Scheduler) nap(due time.Time) time.Duration {
	left := time.Until(due)
	if s.lister.SeesArrivals() {
		left = min(left, arrivalsEvery)
	}
	return left
}

// listAgain makes another watchlist, and returns what it cost, without the searches that rest by themselves.
func (t *tasks) listAgain(ctx context.Context) time.Duration {
	s := t.scheduler
	before := s.lister.Namespaces.Shared.Away()
	previous := s.list.Load()
	cost, err := cputime.Of(func() error { return s.relist(ctx, 0) })
	cost = max(0, cost+time.Duration(s.lister.Namespaces.Shared.Away()-before)-s.lister.Searched())
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.blind()
		s.options().Log.Warn("listeners could not be listed", "err", err)
	case !s.list.Load().Same(previous.Watchlist):
		s.bells.walk.ring()
		s.bells.read.ring()
		s.bells.publish.ring()
	}
	return cost
}
