package observer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/metronome"
)

// scanShare is the largest part of a core that the scans may take: after a scan
// that cost d of CPU time the next one waits at least d / scanShare. The seldom
// looks (outgoingPart, resetPart) have budgets of their own on top; the three
// add up to less than 2 %, the rest is for the garbage collector and wake-ups.
const scanShare = 0.013

// earliest is the shortest time between two scans, however much is happening.
const earliest = 100 * time.Millisecond

// Run samples and scans until ctx is done. The queues are sampled as soon as
// the first scan has found them, before it walks the table. It fails only when
// that scan does; later failures are told in the snapshot.
func (s *Sampler) Run(ctx context.Context) error { return s.run(ctx, ctx) }

// run lets the first scan have its own end: it is done even where it takes
// longer than the loops are to last.
func (s *Sampler) run(first, ctx context.Context) error {
	m, err := metronome.New(s.opt.SampleInterval)
	if err != nil {
		return fmt.Errorf("sample: %w", err)
	}
	s.metronome = m
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		<-ctx.Done()
		m.Stop()
		return nil
	})
	g.Go(func() error {
		for {
			if err := m.Wait(); ctx.Err() != nil {
				return nil
			} else if err != nil {
				return fmt.Errorf("sample: %w", err)
			}
			s.Sample()
		}
	})
	g.Go(func() error {
		s.looping = true
		if err := s.Scan(first); err != nil {
			return err
		}
		return s.scanLoop(ctx)
	})
	return g.Wait()
}

// Observe looks twice, interval apart, sampling in between. It is the whole
// life of a one-shot look; an interval of 0 looks once.
func (s *Sampler) Observe(ctx context.Context, interval time.Duration) error {
	s.once = true
	if interval <= 0 {
		return s.Scan(ctx)
	}
	within, cancel := context.WithTimeout(ctx, interval)
	defer cancel()
	err := s.run(ctx, within)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	return s.Scan(ctx)
}

func (s *Sampler) scanLoop(ctx context.Context) error {
	timer := time.NewTimer(s.pause(s.cost))
	defer timer.Stop()
	early, ended := s.early, s.opt.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-s.changes:
			c.done <- s.reconfigure(c.opt)
			continue
		case <-early:
			// Not at once: the budget holds for scans brought forward, too.
			if wait := max(earliest, share(s.cost)) - s.opt.Now().Sub(ended); wait > 0 {
				early = nil
				timer.Reset(min(wait, s.pause(s.cost)))
				continue
			}
		case <-timer.C:
		}
		if err := s.Scan(ctx); err != nil && ctx.Err() == nil {
			s.opt.Log.Warn("scan failed", "err", err)
		}
		early, ended = s.early, s.opt.Now()
		timer.Reset(s.pause(s.cost))
	}
}

// pause is the time to the next scan: the interval, stretched when scans are dear.
func (s *Sampler) pause(cost time.Duration) time.Duration {
	pause := max(s.opt.ScanInterval, share(cost))
	s.mu.Lock()
	s.self.ScanInterval = pause
	s.mu.Unlock()
	return pause
}

func share(cost time.Duration) time.Duration {
	return time.Duration(float64(cost) / scanShare)
}
