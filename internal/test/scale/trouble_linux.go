package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// How often the agent is asked.
const (
	calmPoll = 15 * time.Second // as Prometheus does
	// settling is how long the agent has before the calm is measured: all is read once, and
	// a queue must have been empty for ten seconds to be calm.
	settling    = 15 * time.Second
	troublePoll = 100 * time.Millisecond
	troubleFor  = 10 * time.Second
	rightCause  = "max_connections"
)

// patient is a server in trouble, and what was seen of it.
type patient struct {
	*server
	truth *truth
	// before is what the kernel had counted that the agent had not: it counts from
	// its own start.
	before uint64
	// From the first dropped packet to the first snapshot that says so; negative
	// as long as none has.
	losing, cause       time.Duration
	dropsAge, queueAge  time.Duration // the most
	statusNow, causeNow string
	wrong               string // the first other cause that was given while losing
}

// trouble overloads the servers at once and watches what the agent makes of it,
// and what that takes of a core.
func (s *scale) trouble(ctx context.Context, agent *rig.Agent, servers []*server) ([]*patient, float64, error) {
	var patients []*patient
	following, stop := context.WithCancel(ctx)
	var background errgroup.Group
	defer func() { stop(); _ = background.Wait() }()
	for _, s := range servers {
		t, err := newTruth(s)
		if err != nil {
			return nil, 0, err
		}
		background.Go(func() error { return t.follow(following) })
		patients = append(patients, &patient{server: s, truth: t, losing: -1, cause: -1})
	}
	first, err := look(ctx, agent)
	if err != nil {
		return nil, 0, err
	}
	for _, p := range patients {
		p.before = p.truth.dropped() - first.by[p.netns].drops
	}
	m, err := s.meter(ctx, agent)
	if err != nil {
		return nil, 0, err
	}
	defer s.profile(ctx, agent, troubleFor)()
	for _, s := range servers {
		background.Go(s.overload)
	}
	for m.elapsed() < troubleFor {
		if err := examine(ctx, m, patients); err != nil {
			return nil, 0, err
		}
		time.Sleep(troublePoll)
	}
	share, err := m.share()
	for i := 0; err == nil && i < len(servers); i++ {
		err = servers[i].relieve()
	}
	return patients, share, err
}

// examine holds one answer of the agent against the truth.
func examine(ctx context.Context, m *meter, patients []*patient) error {
	now, err := m.look(ctx)
	if err != nil {
		return err
	}
	for _, p := range patients {
		p.take(now.by[p.netns], now.metricsAt, now.snapshotAt)
	}
	return nil
}

func (p *patient) take(now published, metricsAt, snapshotAt time.Time) {
	drops, queue := p.truth.staleness(metricsAt, p.before+now.drops, now.queue)
	p.dropsAge, p.queueAge = max(p.dropsAge, drops), max(p.queueAge, queue)
	p.statusNow, p.causeNow = now.status, now.cause
	first, dropped := p.truth.firstDrop()
	if !dropped || now.status != "losing" {
		return
	}
	if p.losing < 0 {
		p.losing = snapshotAt.Sub(first)
	}
	switch {
	case now.cause != rightCause && p.wrong == "":
		p.wrong = now.cause
	case now.cause == rightCause && p.cause < 0:
		p.cause = snapshotAt.Sub(first)
	}
}

// calmness is what an agent takes where nothing is the matter.
type calmness struct {
	before time.Duration // CPU time until what came before had settled, the start included
	share  float64       // of a core from then on, scrapes included
	oldest time.Duration // age of the oldest reading of connections at the end
	estimates
}

// calm measures it over a time.
func (s *scale) calm(ctx context.Context, agent *rig.Agent, during time.Duration) (c calmness, err error) {
	time.Sleep(settling)
	c.before, err = rig.CPUTime(agent.Process.Pid)
	if err != nil {
		return c, err
	}
	start := time.Now()
	end := s.profile(ctx, agent, during)
	for left := during; left > 0; left = during - time.Since(start) {
		now, err := look(ctx, agent)
		if err != nil {
			return c, err
		}
		for _, p := range now.by {
			c.add(p, watched)
		}
		time.Sleep(min(left, calmPoll))
	}
	after, err := rig.CPUTime(agent.Process.Pid)
	if err != nil {
		return c, err
	}
	c.share = float64(after-c.before) / float64(time.Since(start))
	end()
	now, err := look(ctx, agent)
	for _, p := range now.by {
		c.oldest = max(c.oldest, p.connectionsAge)
	}
	return c, err
}
