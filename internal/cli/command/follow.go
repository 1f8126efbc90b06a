package command

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/predict"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
	"github.com/tcpdiag/tcpdiag/internal/threaddump"
)

// FollowSnapshots hands out each snapshot of a source once, until ctx is done. A reader that is slow
// misses some, never the latest.
func FollowSnapshots(ctx context.Context, s *schedule.Scheduler, snapshots chan<- *model.Snapshot) {
	var last *model.Snapshot
	var predicted predict.Effects
	for {
		next := s.Next()
		if snap := predicted.Snapshot(s.Snapshot()); snap != nil && snap != last {
			last = snap
			select {
			case <-ctx.Done():
				return
			case snapshots <- snap:
			}
			continue // there may be another one by now
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
	}
}

// Followed is the scheduler with the follower of its clients.
type Followed struct {
	Scheduler *schedule.Scheduler
	Follower  *clients.Follower
	Dumps     *threaddump.Follower // nil without --thread-dump
	running   atomic.Bool
	effects   predict.Effects
}

// Close leaves what still runs as it is: the process ends.
func (f *Followed) Close() {
	if !f.running.Load() {
		f.Follower.Close()
		f.Scheduler.Close()
	}
}

// Run ends when one of them does.
func (f *Followed) Run(ctx context.Context) error {
	f.running.Store(true)
	defer f.running.Store(false)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.Scheduler.Run(ctx) })
	g.Go(func() error { return f.Follower.Run(ctx) })
	if f.Dumps != nil {
		g.Go(func() error { return f.Dumps.Run(ctx) })
	}
	return g.Wait()
}

// Snapshot is the latest, with clients, with thread dumps, and with what the advised
// changes would do.
func (f *Followed) Snapshot() *model.Snapshot {
	return f.effects.Snapshot(f.Scheduler.Snapshot())
}

// Next is closed when there is another one.
func (f *Followed) Next() <-chan struct{} { return f.Scheduler.Next() }

// PutAgent takes what a task of the agent says of itself, for the snapshots.
func (f *Followed) PutAgent(put func(*model.Agent)) { f.Scheduler.PutAgent(put) }

// RegisterThreadDump adds the one flag by which something is asked of an observed
// process.
func RegisterThreadDump(flags *pflag.FlagSet, value *bool, when string) {
	flags.BoolVar(value, "thread-dump", false, "ask each HotSpot JVM of this user and group for a thread dump, "+when+", as jstack does, and show where its threads are (frames only); the JVM stands still while it writes it")
}

// DumpOnce asks the JVMs of the latest snapshot, and has another one made with what they say.
func DumpOnce(ctx context.Context, s *schedule.Scheduler) error {
	proc, err := openProc()
	if err != nil {
		return err
	}
	s.PutStacks(threaddump.NewAsker(proc).Snapshot(ctx, s.Snapshot()))
	s.Publish()
	return ctx.Err()
}

// FollowDumps asks the JVMs in trouble, for the agent's snapshots.
func FollowDumps(s *schedule.Scheduler, log *slog.Logger) (*threaddump.Follower, error) {
	proc, err := openProc()
	if err != nil {
		return nil, err
	}
	return threaddump.NewFollower(threaddump.NewAsker(proc), s, log), nil
}
