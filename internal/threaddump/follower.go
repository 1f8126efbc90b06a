package threaddump

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

const (
	// calmAfter ends an incident, as it ends its recording; it is also the least time
	// between two requests to one process.
	calmAfter = time.Minute
	// maxAtOnce is how many are asked at one time, and maxProcesses how many have a place.
	maxAtOnce = 4
	// maxBeyond are the places beyond these, for owners that have none: nobody's processes take them all.
	maxBeyond = 8
)

// Source has the snapshots that show who is in trouble, and takes the answers.
type Source interface {
	// Snapshot is the latest, nil before the first.
	Snapshot() *model.Snapshot
	// Next is closed when there is another one.
	Next() <-chan struct{}
	// PutStacks takes all answers that there are by now.
	PutStacks(of map[hostproc.ProcessKey]facts.Stacks)
}

// Follower asks the JVMs in trouble for thread dumps: each for one, until it has been
// without trouble for a minute.
type Follower struct {
	ask    func(context.Context, hostproc.ProcessKey) (*model.Stacks, error)
	source Source
	log    *slog.Logger

	mu    sync.Mutex // of what follows; it is not held while a process is asked
	cases map[hostproc.ProcessKey]*trouble
}

// trouble is a process that is, or was within the last minute.
type trouble struct {
	owner   string    // whose share it takes up
	calm    time.Time // since when there is none; zero while there is
	asked   time.Time // by the snapshots' clock
	settled bool      // it is not asked again
	waiting bool      // for its answer
	got     facts.Stacks
}

// NewFollower asks by an Asker's Ask.
func NewFollower(a *Asker, source Source, log *slog.Logger) *Follower {
	return &Follower{ask: a.Ask, source: source, log: log, cases: make(map[hostproc.ProcessKey]*trouble)}
}

// Run asks until ctx is done.
func (f *Follower) Run(ctx context.Context) error {
	for {
		next := f.source.Next()
		if s := f.source.Snapshot(); s != nil {
			f.update(ctx, s)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
	}
}

// update takes a snapshot, and begins to ask whom it is due to ask.
func (f *Follower) update(ctx context.Context, s *model.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := len(f.cases)
	f.inspect(s)
	if len(f.cases) < known {
		f.put()
	}
	for key, c := range f.cases {
		if c.due(s.Time) && f.room(c.owner, maxAtOnce, func(c *trouble) bool { return c.waiting }) {
			c.asked, c.waiting = s.Time, true
			go f.answer(ctx, key, c)
		}
	}
}

// put hands over the answers that there are.
func (f *Follower) put() {
	answers := make(map[hostproc.ProcessKey]facts.Stacks)
	for key, c := range f.cases {
		if c.got.Stacks != nil || c.got.Missed != nil {
			answers[key] = c.got
		}
	}
	f.source.PutStacks(answers)
}

// inspect notes which processes are in trouble.
func (f *Follower) inspect(s *model.Snapshot) {
	troubled := inTrouble(s)
	for key, c := range f.cases {
		_, is := troubled[key]
		switch {
		case is:
			c.calm = time.Time{}
		case c.calm.IsZero() || s.Time.Before(c.calm): // a clock that was set back
			c.calm = s.Time
		}
	}
	maps.DeleteFunc(f.cases, func(_ hostproc.ProcessKey, c *trouble) bool {
		return !c.waiting && !c.calm.IsZero() && s.Time.Sub(c.calm) >= calmAfter
	})
	for key, owner := range troubled {
		if f.cases[key] == nil && f.room(owner, maxProcesses, func(*trouble) bool { return true }) {
			f.cases[key] = &trouble{owner: owner}
		}
	}
}

// room reports whether there may be one more of an owner's beside those cases: as many as is usual, and of an owner that has none
// also beyond.
func (f *Follower) room(owner string, usual int, taken func(*trouble) bool) bool {
	all, theirs := 0, 0
	for _, c := range f.cases {
		if taken(c) {
			all++
			if c.owner == owner {
				theirs++
			}
		}
	}
	return all < usual || theirs == 0 && all < usual+maxBeyond
}

// inTrouble are the JVMs with a listener of which an incident is recorded, and whose they are.
func inTrouble(s *model.Snapshot) map[hostproc.ProcessKey]string {
	owners := make(map[hostproc.ProcessKey]string)
	for i := range s.Listeners {
		l := &s.Listeners[i]
		if l.Verdict.Status >= model.StatusSaturated && l.Process != nil && model.IsJVM(l.Process.Comm) {
			owners[keyOf(l)] = shares.OwnerOf(l)
		}
	}
	return owners
}

// due: one that was refused may be asked again a minute later, while there is trouble.
func (c *trouble) due(now time.Time) bool {
	return !c.settled && !c.waiting && c.calm.IsZero() && (c.asked.IsZero() || now.Sub(c.asked) >= calmAfter || now.Before(c.asked))
}

func (f *Follower) answer(ctx context.Context, key hostproc.ProcessKey, c *trouble) {
	stacks, err := f.ask(ctx, key)
	got, signalled := answerOf(key, stacks, err)
	if stacks != nil {
		f.log.Info("thread dump", "pid", key.PID, "threads", stacks.Threads, "took", stacks.Took.Round(time.Millisecond))
	} else {
		f.log.Warn("no thread dump", "pid", key.PID, "err", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// A JVM that was sent SIGQUIT and did not answer prints to its own output when it
	// continues: it is not sent another.
	c.got, c.waiting, c.settled = got, false, stacks != nil || signalled
	f.put()
}
