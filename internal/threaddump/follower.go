package threaddump

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// lookEvery is how often a new snapshot is looked for.
	lookEvery = 100 * time.Millisecond
	// calmAfter ends an incident, as it ends its recording; it is also the least time
	// between two requests to one process.
	calmAfter = time.Minute
	// maxAtOnce bounds how many are asked at one time.
	maxAtOnce = 4
)

// Follower adds thread dumps to the snapshots of a source: of each process in trouble
// one, until it has been without trouble for a minute.
type Follower struct {
	ask    func(context.Context, hostproc.ProcessKey) (*model.Stacks, error)
	source func() *model.Snapshot
	log    *slog.Logger

	mu     sync.Mutex // of what follows; it is not held while a process is asked
	cases  map[hostproc.ProcessKey]*trouble
	asking int
	seen   *model.Snapshot // the latest whose processes were looked at
	base   *model.Snapshot // the latest that answers were added to,
	merged *model.Snapshot // and the result
}

// trouble is a process that is, or was within the last minute.
type trouble struct {
	calm    time.Time // since when there is none; zero while there is
	asked   time.Time // by the snapshots' clock
	settled bool      // it is not asked again
	waiting bool      // for its answer
	got     answer
}

// NewFollower asks by an Asker's Ask, and adds to the snapshots of source, nil before
// the first.
func NewFollower(a *Asker, source func() *model.Snapshot, log *slog.Logger) *Follower {
	return &Follower{ask: a.Ask, source: source, log: log, cases: make(map[hostproc.ProcessKey]*trouble)}
}

// Run asks until ctx is done.
func (f *Follower) Run(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			f.update(ctx)
		}
	}
}

// Snapshot is the source's latest, with the thread dumps that there are by now.
func (f *Follower) Snapshot() *model.Snapshot {
	s := f.source()
	f.mu.Lock()
	defer f.mu.Unlock()
	if s == nil {
		return nil
	}
	if s == f.base {
		return f.merged
	}
	answers := make(map[hostproc.ProcessKey]answer)
	for key, c := range f.cases {
		if c.got.stacks != nil || c.got.missed != nil {
			answers[key] = c.got
		}
	}
	f.base, f.merged = s, s
	if len(answers) > 0 {
		f.merged = with(s, answers)
	}
	return f.merged
}

// update looks at the latest snapshot, and begins to ask whom it is due to ask.
func (f *Follower) update(ctx context.Context) {
	s := f.source()
	f.mu.Lock()
	defer f.mu.Unlock()
	if s == nil || s == f.seen {
		return
	}
	f.seen = s
	f.look(s)
	for key, c := range f.cases {
		if c.due(s.Time) && f.asking < maxAtOnce {
			c.asked, c.waiting = s.Time, true
			f.asking++
			go f.answer(ctx, key, c)
		}
	}
}

// look notes which processes are in trouble.
func (f *Follower) look(s *model.Snapshot) {
	troubled := inTrouble(s)
	for key, c := range f.cases {
		switch {
		case slices.Contains(troubled, key):
			c.calm = time.Time{}
		case c.calm.IsZero() || s.Time.Before(c.calm): // a clock that was set back
			c.calm = s.Time
		}
	}
	maps.DeleteFunc(f.cases, func(_ hostproc.ProcessKey, c *trouble) bool {
		return !c.waiting && !c.calm.IsZero() && s.Time.Sub(c.calm) >= calmAfter
	})
	for _, key := range troubled {
		if f.cases[key] == nil && len(f.cases) < maxProcesses {
			f.cases[key] = &trouble{}
		}
	}
}

// inTrouble are the JVMs with a listener of which an incident is recorded.
func inTrouble(s *model.Snapshot) (keys []hostproc.ProcessKey) {
	for i := range s.Listeners {
		l := &s.Listeners[i]
		if l.Verdict.Status >= model.StatusSaturated && l.Process != nil && model.IsJVM(l.Process.Comm) {
			keys = append(keys, keyOf(l))
		}
	}
	return keys
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
	f.asking--
	// A JVM that was sent SIGQUIT and did not answer prints to its own output when it
	// continues: it is not sent another.
	c.got, c.waiting, c.settled = got, false, stacks != nil || signalled
	f.base = nil // what was made without it is made again
}
