package main

import (
	"context"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const (
	// scrapesToWeigh is how many scrapes their price is taken from.
	scrapesToWeigh = 20
	// snapshotsToWeigh is the same of scrapes that are the first of their snapshot, from which the answers have to be made. Calm snapshots
	// come each second.
	snapshotsToWeigh = 8
	betweenSnapshots = 1100 * time.Millisecond
)

// meter separates the agent's own share of a core from what the scrapes of this
// program cost it: nobody else asks it ten times a second.
type meter struct {
	agent *rig.Agent
	start time.Time
	used  time.Duration
	// made is the price of a scrape that is the first of its snapshot, again that of another one: what is made once is answered again.
	made, again time.Duration
	of          time.Time // the latest snapshot's
	scrapes     time.Duration
}

// meter weighs scrapes, and then starts.
func (s *scale) meter(ctx context.Context, agent *rig.Agent) (*meter, error) {
	m := &meter{agent: agent}
	calm, err := m.spent(func() error { return m.pause(ctx) })
	if err != nil {
		return nil, err
	}
	looked, err := m.spent(func() error {
		for range snapshotsToWeigh {
			if _, err := look(ctx, agent); err != nil {
				return err
			}
			rig.Wait(ctx, betweenSnapshots)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	repeated, err := m.spent(func() error {
		for range scrapesToWeigh {
			if _, err := look(ctx, agent); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.made, m.again = max(0, looked-calm)/snapshotsToWeigh, repeated/scrapesToWeigh
	m.used, err = rig.CPUTime(agent.Process.Pid)
	m.start = time.Now()
	return m, err
}

// pause is as long as the scrapes of snapshotsToWeigh take.
func (m *meter) pause(ctx context.Context) error {
	rig.Wait(ctx, snapshotsToWeigh*betweenSnapshots)
	return ctx.Err()
}

// spent is the agent's CPU time meanwhile.
func (m *meter) spent(do func() error) (time.Duration, error) {
	before, err := rig.CPUTime(m.agent.Process.Pid)
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := rig.CPUTime(m.agent.Process.Pid)
	return after - before, err
}

func (m *meter) elapsed() time.Duration { return time.Since(m.start) }

func (m *meter) look(ctx context.Context) (answer, error) {
	a, err := look(ctx, m.agent)
	if a.of.After(m.of) {
		m.of = a.of
		m.scrapes += m.made
	} else {
		m.scrapes += m.again
	}
	return a, err
}

// share is without the scrapes.
func (m *meter) share() (float64, error) {
	now, err := rig.CPUTime(m.agent.Process.Pid)
	return float64(now-m.used-m.scrapes) / float64(m.elapsed()), err
}
