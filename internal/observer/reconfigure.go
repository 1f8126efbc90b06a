package observer

import (
	"context"
	"fmt"
)

// change is a request to the lister's loop.
type change struct {
	opt  Options
	done chan error
}

// Reconfigure makes a running observer continue with other targets, limits, labels
// and intervals; Inside, Window, Thresholds, Log and Now stay. Listeners that
// are still named keep their counters, the totals of the others are retained as
// those of closed listeners. It returns when the change is in force, and the
// next snapshot, which it brings forward, shows it. With an error nothing has
// changed.
func (s *Observer) Reconfigure(ctx context.Context, opt Options) error {
	c := change{opt: opt, done: make(chan error, 1)}
	select {
	case s.changes <- c:
	case <-ctx.Done():
		return fmt.Errorf("reconfigure: a scan is under way: %w", ctx.Err())
	}
	if err := <-c.done; err != nil {
		return fmt.Errorf("reconfigure: %w", err)
	}
	return nil
}

// reconfigure is the lister's loop's, between two rosters.
func (s *Observer) reconfigure(opt Options) error {
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
