package plan

import "time"

// maxPlanPoints bounds the timeline; there are at least half as many unless
// everything is over within that many milliseconds.
const maxPlanPoints = 240

// Point is how things stand at one moment.
type Point struct {
	T           time.Duration // since the first SYN
	InService   int           // connections a thread works on
	Waiting     int           // accepted connections without a thread
	AcceptQueue int
	HalfOpen    int // clients that believe they are connected while their final ACK was dropped
	Retrying    int // clients whose SYN was dropped and who try again
	Served      int // so far
	Lost        int // so far, whatever they saw
}

// Stage is when a stage of the funnel was full.
type Stage struct {
	Name string // accept_queue, max_connections, max_threads, connection_pool
	Max  int    // 0: no limit
	Peak int
	// FullFor is how long it was full in all, between FullFrom and FullUntil.
	FullFrom, FullUntil, FullFor time.Duration
}

// planRecorder keeps the timeline on an even grid that becomes coarser as the
// simulated time advances, and the exact times at which stages were full.
type planRecorder struct {
	point  Point // as things stand
	points []Point
	step   time.Duration
	stages []stageMeter
}

func newPlanRecorder(in *Input) *planRecorder {
	r := &planRecorder{step: time.Millisecond, stages: []stageMeter{
		{Stage: Stage{Name: "accept_queue", Max: in.Backlog() + 1}},
		{Stage: Stage{Name: "max_connections", Max: max(0, in.MaxConnections)}},
		{Stage: Stage{Name: "max_threads", Max: max(0, in.Threads)}},
	}}
	if in.BackendConnections > 0 {
		r.stages = append(r.stages, stageMeter{Stage: Stage{Name: "connection_pool", Max: in.BackendConnections}})
	}
	return r
}

// observe takes note of the stages after something has happened.
func (r *planRecorder) observe(now time.Duration, busy, conns, lingering, queued, calls int) {
	r.point.InService = busy
	r.point.Waiting = conns - busy - lingering
	r.point.AcceptQueue = queued
	r.stages[0].observe(now, queued)
	r.stages[1].observe(now, conns)
	r.stages[2].observe(now, busy)
	if len(r.stages) > 3 {
		r.stages[3].observe(now, calls)
	}
}

// advance adds the grid's points before the next event. Beyond the limit
// every second one is given up and the step doubles.
func (r *planRecorder) advance(to time.Duration) {
	for t := r.nextPoint(); t < to; t = r.nextPoint() {
		r.add(t)
		if len(r.points) == maxPlanPoints {
			for i := range maxPlanPoints / 2 {
				r.points[i] = r.points[2*i]
			}
			r.points = r.points[:maxPlanPoints/2]
			r.step *= 2
		}
	}
}

func (r *planRecorder) nextPoint() time.Duration { return time.Duration(len(r.points)) * r.step }

func (r *planRecorder) add(t time.Duration) {
	r.point.T = t
	r.points = append(r.points, r.point)
}

// finish adds the last point and closes the meters.
func (r *planRecorder) finish(end time.Duration) ([]Point, []Stage) {
	for n := len(r.points); n > 0 && r.points[n-1].T >= end; n-- {
		r.points = r.points[:n-1] // events after the end concern nobody any more
	}
	r.add(end)
	stages := make([]Stage, 0, len(r.stages))
	for i := range r.stages {
		stages = append(stages, r.stages[i].Stage)
	}
	return r.points, stages
}

// stageMeter measures when a stage is full.
type stageMeter struct {
	Stage
	full  bool
	since time.Duration
}

func (m *stageMeter) observe(now time.Duration, n int) {
	m.Peak = max(m.Peak, n)
	full := m.Max > 0 && n >= m.Max
	switch {
	case full == m.full:
		return
	case full:
		m.since = now
		if m.FullFor == 0 {
			m.FullFrom = now
		}
	default:
		m.FullUntil = now
		m.FullFor += now - m.since
	}
	m.full = full
}
