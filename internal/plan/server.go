package plan

import "time"

// accept is Tomcat's Acceptor: it takes a slot of the connection latch before
// it calls accept(), so that at the limit everything else waits in the kernel.
// It is taken to be instant, but for LateAcceptor.
func (s *planSim) accept() {
	for s.conns < s.maxConns && s.accepts.len() > 0 {
		i := s.accepts.pop()
		s.conns++
		if s.clients[i].asked {
			s.ready(i)
		} else {
			s.clients[i].state = stateSilent
		}
	}
}

// ready is the poller finding request bytes: a free thread takes them, or they
// wait in the executor's queue.
func (s *planSim) ready(i int32) {
	if s.busy < s.threads {
		s.serve(i)
		return
	}
	if s.in.MaxQueue > 0 && s.waiting.len() >= s.in.MaxQueue {
		s.reject(i)
		return
	}
	s.clients[i].state = stateWaiting
	s.waiting.push(i)
}

// reject closes the connection of a request for which the executor's queue has no place, without an answer.
func (s *planSim) reject(i int32) {
	c := &s.clients[i]
	c.state = stateClosed
	if !c.left {
		c.left = true
		s.outcome(&s.plan.Outcomes.Reset, s.now+s.halfTrip)
	}
	s.lingering++
	s.timers.set(timerClosed, s.now+s.in.Linger, i)
}

func (s *planSim) serve(i int32) {
	s.busy++
	s.clients[i].state = stateServing
	if s.in.BackendConnections > 0 {
		s.timers.set(timerWorked, s.now+s.in.ServiceTime, i)
		return
	}
	s.timers.set(timerFinish, s.now+s.in.ServiceTime, i)
}

// tie is the part of its wait by which a response must come before its client's
// timeout; what comes later is taken to be late. Rounds of requests of 5 s take
// a real Tomcat less than 1 ms longer each, but the clocks of clients that come
// at the same moment run before their requests reach a thread: for k6 with 3000
// virtual users on two processors 0.05 to 0.3 s before.
const tie = 0.0035

// finish is a thread writing its response.
func (s *planSim) finish(i int32) {
	c := &s.clients[i]
	c.state = stateClosed
	s.busy--
	if s.in.BackendConnections > 0 {
		s.hangUp()
	}
	s.plan.Duration = max(s.plan.Duration, s.now)
	arrives := s.now + s.halfTrip
	late := arrives+tied(arrives-c.start-s.in.alone()) >= c.deadline
	if c.deadline != never && c.connected < c.deadline && (arrives-c.deadline).Abs() <= s.in.ClientTimeout/100 {
		s.plan.nearTimeout(late)
	}
	switch {
	case c.left:
		s.plan.Wasted++
	case late:
		c.left = true
		s.plan.Wasted++
		s.outcome(&s.plan.Outcomes.ReadTimeout, c.deadline)
	default:
		s.served = append(s.served, arrives-c.start)
		s.outcome(&s.plan.Outcomes.Served, arrives)
	}
	if s.waiting.len() > 0 {
		s.serve(s.waiting.pop())
	}
	if s.in.Linger > 0 {
		s.lingering++
		s.timers.set(timerClosed, s.now+s.in.Linger, i)
		return
	}
	s.closed()
}

// closed is a connection giving up its place.
func (s *planSim) closed() {
	s.conns--
	s.accept()
}

func tied(wait time.Duration) time.Duration { return time.Duration(tie * float64(max(0, wait))) }

func (p *Plan) nearTimeout(late bool) {
	if late {
		p.JustLate++
	} else {
		p.JustInTime++
	}
}

// call is a thread whose own work is done: it takes a connection to the backend
// from the pool, or waits for one. Meanwhile it serves nobody else.
func (s *planSim) call(i int32) {
	if s.calls == s.in.BackendConnections {
		s.poolWait.push(i)
		return
	}
	s.calls++
	s.timers.set(timerFinish, s.now+s.in.BackendTime, i)
}

// hangUp gives a connection back: to the thread that has waited longest.
func (s *planSim) hangUp() {
	s.calls--
	if s.poolWait.len() > 0 {
		s.call(s.poolWait.pop())
	}
}
