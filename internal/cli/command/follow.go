package command

import (
	"context"
	"sync/atomic"

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
