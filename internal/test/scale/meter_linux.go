package main

import (
	"context"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// scrapesToWeigh is how many scrapes their price is taken from.
const scrapesToWeigh = 20

// meter separates the agent's own share of a core from what the scrapes of this
// program cost it: nobody else asks it ten times a second.
type meter struct {
	agent  *rig.Agent
	start  time.Time
	used   time.Duration
	scrape time.Duration // price of one
	number int           // of scrapes since the start
}

// meter weighs scrapes in a row, and then starts.
func (s *scale) meter(ctx context.Context, agent *rig.Agent) (*meter, error) {
	m := &meter{agent: agent}
	before, err := rig.CPUTime(agent.Process.Pid)
	if err != nil {
		return nil, err
	}
	for range scrapesToWeigh {
		if _, _, _, err := m.look(ctx); err != nil {
			return nil, err
		}
	}
	if m.used, err = rig.CPUTime(agent.Process.Pid); err != nil {
		return nil, err
	}
	m.scrape, m.start, m.number = (m.used-before)/scrapesToWeigh, time.Now(), 0
	return m, nil
}

func (m *meter) elapsed() time.Duration { return time.Since(m.start) }

func (m *meter) look(ctx context.Context) (by map[uint64]published, metricsAt, snapshotAt time.Time, err error) {
	m.number++
	return look(ctx, m.agent)
}

// share is without the scrapes.
func (m *meter) share() (float64, error) {
	now, err := rig.CPUTime(m.agent.Process.Pid)
	return float64(now-m.used-time.Duration(m.number)*m.scrape) / float64(m.elapsed()), err
}
