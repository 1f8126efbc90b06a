package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// sampled is H2 with clients that come and go at a server that is far from its limits: its
// phases are estimates, held against the requests that are in service.
func (s *scale) sampled(ctx context.Context, one *server, ends int) error {
	agent, err := s.startAgent(ctx, append(limits{3 * watched, one.acceptCount}.flags(), "--port", fmt.Sprint(port))...)
	if err != nil {
		return err
	}
	defer agent.Kill()
	following, stop := context.WithCancel(ctx)
	var passing errgroup.Group
	passing.Go(func() error { return one.pass(following) })
	among, err := s.calm(ctx, agent, s.Calm)
	stop()
	if err := passing.Wait(); err != nil {
		return err
	}
	name := fmt.Sprintf("%s socket ends, %s connections of %s, 2 clients a second come and go", count(ends), count(watched), count(3*watched))
	e := among.estimates
	s.report.add(calmRow("H2", fmt.Sprintf("%s: share of a core over %.0f s", name, s.Calm.Seconds()), among.share), oldestRow("H2", among.oldest), row{
		Scenario: "H2", What: "the same: phases published, estimates among them, the largest error stated", Budget: "the error holds",
		Ours: fmt.Sprintf("%d, %d, ±%s", e.looks, e.estimated, count(e.stated)), Met: e.wrong == 0 && e.estimated > 0,
		Note: fmt.Sprintf("requests in service that were off by at most %d", e.off),
	})
	return err
}

// pass has clients come, be accepted and go, until the context ends.
func (s *server) pass(ctx context.Context) error {
	ticks := time.NewTicker(2 * time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		for _, do := range []func() error{
			func() error { return s.burst.Do(port, 4) }, func() error { return s.Do(0, 0) }, func() error { return s.burst.Do(port, 0) },
		} {
			if err := do(); err != nil {
				return err
			}
		}
	}
}

// estimates are the phases of thousands of connections as they were published.
type estimates struct {
	looks, estimated int
	stated, off      int // the most
	wrong            int // farther off than stated
}

func (e *estimates) add(p published, inService int) {
	off := max(p.inService-inService, inService-p.inService)
	if e.looks++; p.samplingError > 0 {
		e.estimated++
	}
	e.stated, e.off = max(e.stated, p.samplingError), max(e.off, off)
	if off > p.samplingError {
		e.wrong++
	}
}
