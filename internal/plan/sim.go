package plan

import (
	"math"
	"time"
)

// planState is where a client's connection stands at the server.
type planState uint8

const (
	stateOutside   planState = iota // its SYN was dropped, or has not arrived
	stateHandshake                  // the SYN+ACK is on its way
	stateHalfOpen                   // its final ACK was dropped: only the client believes in the connection
	stateQueued                     // in the accept queue
	stateSilent                     // accepted; the request's bytes have not arrived yet
	stateWaiting                    // accepted; no thread yet
	stateServing
	stateClosed
)

type planClient struct {
	start     time.Duration // of its first SYN
	connected time.Duration // when the SYN+ACK reached it, or never
	deadline  time.Duration // for the response, or never
	state     planState
	tries     uint8 // SYNs repeated
	synAcks   uint8 // SYN+ACKs repeated
	again     bool  // its final ACK comes with a repeated packet
	cookie    bool  // the server answered with a syncookie and keeps no half-open connection
	expired   bool  // the server has forgotten its half-open connection
	asked     bool  // the request's bytes have reached the server
	left      bool  // the client has given up
}

// planSim is one run of the funnel.
type planSim struct {
	in       Input
	backlog  int
	maxConns int
	threads  int
	halfTrip time.Duration
	synWaits []int64
	data     dataRetries

	now     time.Duration
	timers  *planTimers
	clients []planClient

	syns    synQueue
	accepts planQueue[int32] // the accept queue
	conns   int              // accepted
	// lingering of them are answered and not closed
	lingering int
	waiting   planQueue[int32] // accepted, in the order in which threads take them
	busy      int

	calls    int              // backend connections in use
	poolWait planQueue[int32] // threads that wait for one

	plan   *Plan
	served []time.Duration // latencies
	rec    *planRecorder
}

// simulate runs the load to its end.
func simulate(in Input) *Plan {
	s := newPlanSim(in)
	s.timers.set(timerArrive, s.halfTrip, 0)
	for {
		kind, e, ok := s.timers.pop()
		if !ok {
			break
		}
		if e.at > s.now {
			s.rec.advance(e.at)
			s.now = e.at
		}
		s.handle(kind, e.client)
		s.rec.observe(s.now, s.busy, s.conns, s.lingering, s.accepts.len(), s.calls)
	}
	s.plan.Latency = latencyOf(s.served)
	s.plan.Timeline, s.plan.Stages = s.rec.finish(s.plan.Duration)
	return s.plan
}

func newPlanSim(in Input) *planSim {
	s := &planSim{
		in:       in,
		backlog:  in.Backlog(),
		maxConns: in.MaxConnections,
		threads:  in.Threads,
		halfTrip: in.RoundTrip / 2,
		synWaits: in.SynRetries.waits(),
		data:     newDataRetries(in.RoundTrip),
		timers:   newPlanTimers(),
		clients:  make([]planClient, in.Requests),
		served:   make([]time.Duration, 0, in.Requests),
		plan:     &Plan{Input: in},
	}
	if n, ok := in.capacity(); ok {
		s.plan.Capacity = new(n)
	} else {
		s.maxConns = noLimit
	}
	if s.threads < 0 {
		s.threads = noLimit
	}
	s.rec = newPlanRecorder(&in)
	return s
}

func (s *planSim) handle(kind planTimer, i int32) {
	switch {
	case kind == timerFinish:
		s.finish(i)
	case kind == timerWorked:
		s.call(i)
	case kind == timerClosed:
		s.lingering--
		s.closed()
	case kind == timerConnect:
		s.connectTimeout(i)
	case kind == timerResponse:
		s.responseTimeout(i)
	case kind == timerArrive:
		s.arrive(i)
	case kind < timerSynAck:
		s.synAgain(i)
	case kind < timerData:
		s.synAckAgain(i, int(kind-timerSynAck))
	case kind < timerFinalACK:
		s.dataAgain(i, int(kind-timerData))
	case kind == timerFinalACK:
		s.finalACK(i)
	default:
		s.accept()
	}
}

// outcome books what a client saw.
func (s *planSim) outcome(counter *int, at time.Duration) {
	*counter++
	s.plan.ClientsDone = max(s.plan.ClientsDone, at)
	s.plan.Duration = max(s.plan.Duration, at)
	s.rec.point.Served = s.plan.Outcomes.Served
	s.rec.point.Lost = s.plan.Outcomes.Failed()
}

// after adds a timeout to a moment; 0 means that it never runs out.
func after(t, timeout time.Duration) time.Duration {
	if timeout == 0 || timeout > math.MaxInt64-t {
		return never
	}
	return t + timeout
}
