package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

func (s *Scheduler) options() *Options { return s.opt.Load() }

// adopt makes the options the scheduler's. With an error all stays as it was.
func (s *Scheduler) adopt(opt Options) error {
	if err := s.lister.Adopt(&opt.Options); err != nil {
		return err
	}
	s.opt.Store(&opt)
	return nil
}

// readAll reads the connections and processes of all that is watched. It fails
// when no namespace can be walked.
func (s *Scheduler) readAll(ctx context.Context, r *watchlist.List) error {
	for key := range r.Owners() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.processes.Read(key)
	}
	s.processes.Retain(r.Owners())
	var errs []error
	walked := 0
	for _, n := range r.Namespaces {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(r.In(n.ID)) == 0 {
			continue
		}
		walked++
		if _, err := s.readConnections(r, n); err != nil {
			errs = append(errs, err)
		}
	}
	s.scanner.Retain(r.Watchlist)
	if walked > 0 && len(errs) == walked {
		return errors.Join(errs...)
	}
	return nil
}

// readConnections reads the connections of one namespace, and what else its table says.
func (s *Scheduler) readConnections(r *watchlist.List, n *namespace.Namespace) (time.Duration, error) {
	last := !s.looping.Load()
	cost, err := s.scanner.Read(r.Watchlist, n, last)
	cost += s.scanner.CountForgotten(r.Watchlist, n, n.Readings(), last)
	return cost, err
}

// relist makes a watchlist, and has it watched.
func (s *Scheduler) relist(ctx context.Context, patience time.Duration) error {
	r, err := s.lister.List(ctx, &s.options().Options, patience)
	if err != nil {
		return err
	}
	s.lister.ReadSettings(r)
	s.facts.Retain(r.Watchlist)
	s.list.Store(r)
	return nil
}

// others is the CPU time of everything but the readings, which are spent from the bucket.
func (s *Scheduler) others() time.Duration {
	if used := s.options().CPUTime; used != nil {
		return used() - s.bucket.total()
	}
	return s.turns.total()
}

// blind publishes that the kernel no longer answers. What was read last stays,
// with its time: its readers see that it is old.
func (s *Scheduler) blind() {
	last := s.published.latest.Load()
	if last == nil {
		return
	}
	stale := *last
	stale.Self.SourceUp = map[string]bool{"sock_diag": false, "netstat": false}
	s.published.store(&stale)
}

// change is a request to the lister's loop.
type change struct {
	opt  Options
	done chan error
}

// reconfigure is the lister's loop's, between two watchlists.
func (s *Scheduler) reconfigure(opt Options) error {
	next := *s.options()
	next.Ports, next.PIDs, next.All, next.Targets = opt.Ports, opt.PIDs, opt.All, opt.Targets
	next.AllNamespaces = opt.AllNamespaces
	next.Labels, next.Limits, next.Actuator = opt.Labels, opt.Limits, opt.Actuator
	next.SampleInterval, next.ScanInterval, next.MaxListeners = opt.SampleInterval, opt.ScanInterval, opt.MaxListeners
	if next.SampleInterval <= 0 {
		return fmt.Errorf("sample interval %v: must be positive", next.SampleInterval)
	}
	if err := s.adopt(next); err != nil {
		return err
	}
	s.self.newInterval()
	return nil
}
