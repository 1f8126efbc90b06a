package plan

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
