package diagnosis

import "time"

// accept is Tomcat's Acceptor: it takes a slot of the connection latch before
// it calls accept(), so that at the limit everything else waits in the kernel.
// It is taken to be instant.
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
	if s.busy < s.in.Threads {
		s.serve(i)
		return
	}
	s.clients[i].state = stateWaiting
	s.waiting.push(i)
}

func (s *planSim) serve(i int32) {
	s.busy++
	s.clients[i].state = stateServing
	s.timers.set(timerFinish, s.now+s.in.ServiceTime, i)
}

// lag is the part of its wait by which a response comes later than the work
// alone would have it: each thread takes a moment to take the next request. On a
// real Tomcat the twelfth of requests of 5 s was ready after 60.2 s, not 60.
const lag = 0.0035

// finish is a thread writing its response and closing the connection.
func (s *planSim) finish(i int32) {
	c := &s.clients[i]
	c.state = stateClosed
	s.busy--
	s.conns--
	s.plan.Duration = max(s.plan.Duration, s.now)
	arrives := s.now + s.halfTrip
	switch {
	case c.gone:
		s.plan.Wasted++
	case arrives+lagOf(arrives-c.start-s.in.ServiceTime) >= c.deadline: // a tie is late
		c.gone = true
		s.plan.Wasted++
		s.outcome(&s.plan.Outcomes.ReadTimeout, c.deadline)
	default:
		if c.deadline-arrives <= s.in.ClientTimeout/100 {
			s.plan.AtTimeout++
		}
		s.served = append(s.served, arrives-c.start)
		s.outcome(&s.plan.Outcomes.Served, arrives)
	}
	if s.waiting.len() > 0 {
		s.serve(s.waiting.pop())
	}
	s.accept()
}

func lagOf(wait time.Duration) time.Duration { return time.Duration(lag * float64(max(0, wait))) }
