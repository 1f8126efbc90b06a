package plan

import "time"

// arrive is a client's first SYN reaching the server.
func (s *planSim) arrive(i int32) {
	c := &s.clients[i]
	c.start = s.now - s.halfTrip
	c.connected, c.deadline = never, never
	if next := int(i) + 1; next < len(s.clients) {
		s.timers.set(timerArrive, s.in.startOf(next)+s.halfTrip, i+1)
	}
	if t := after(c.start, s.in.ConnectTimeout); t != never {
		s.timers.set(timerConnect, max(t, s.now), i)
	}
	if !s.in.TimeoutFromConnect {
		s.setDeadline(i, after(c.start, s.in.ClientTimeout))
	}
	s.syn(i)
}

func (s *planSim) setDeadline(i int32, t time.Duration) {
	s.clients[i].deadline = t
	if t != never {
		s.timers.set(timerResponse, max(t, s.now), i)
	}
}

// synAgain is a repeated SYN reaching the server, or the client's kernel
// giving up some time after the last one.
func (s *planSim) synAgain(i int32) {
	c := &s.clients[i]
	switch {
	case c.left || c.state != stateOutside:
	case int(c.tries) == len(s.synWaits):
		s.leave(i)
		s.outcome(&s.plan.Outcomes.ConnectTimeout, s.now-s.halfTrip)
	default:
		s.syn(i)
	}
}

// connectTimeout is the client's patience with connect() running out.
func (s *planSim) connectTimeout(i int32) {
	c := &s.clients[i]
	if c.left || c.connected <= s.now {
		return
	}
	s.leave(i)
	s.outcome(&s.plan.Outcomes.ConnectTimeout, s.now)
}

// responseTimeout is the client's patience with the response running out. One
// that has no connection yet saw no more than connect() hanging.
func (s *planSim) responseTimeout(i int32) {
	c := &s.clients[i]
	if c.left || c.state == stateClosed {
		return
	}
	counter := &s.plan.Outcomes.ReadTimeout
	if c.connected > s.now {
		counter = &s.plan.Outcomes.ConnectTimeout
	}
	s.leave(i)
	s.outcome(counter, s.now)
}

// leave closes the client's end. The server's end stays where it is: a
// connection in the accept queue or in Tomcat keeps its place, its request is
// executed, and only writing the response fails.
func (s *planSim) leave(i int32) {
	c := &s.clients[i]
	c.left = true
	if c.state == stateOutside {
		s.believes(c, stateClosed)
	}
}

// believes moves a client that the server knows nothing of, and keeps count of
// those that try without success and those that believe they are connected.
func (s *planSim) believes(c *planClient, state planState) {
	count := func(st planState, d int) {
		switch {
		case st == stateOutside && c.tries > 0:
			s.rec.point.Retrying += d
		case st == stateHalfOpen:
			s.rec.point.HalfOpen += d
		}
	}
	count(c.state, -1)
	c.state = state
	count(c.state, +1)
}

// reset is an RST reaching a client that still waits.
func (s *planSim) reset(i int32) {
	c := &s.clients[i]
	s.believes(c, stateClosed)
	if !c.left {
		s.outcome(&s.plan.Outcomes.Reset, s.now+s.halfTrip)
	}
}
