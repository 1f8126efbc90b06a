package plan

// syn is what tcp_conn_request does with a SYN.
func (s *planSim) syn(i int32) {
	c := &s.clients[i]
	cookie, ok := s.admits()
	if !ok {
		s.plan.Dropped.SYN++
		sent := s.now - s.halfTrip
		s.timers.set(timerSYN+planTimer(c.tries), fireAt(sent, s.synWaits[c.tries])+s.halfTrip, i)
		if c.tries++; c.tries == 1 {
			s.plan.Retried++
			s.rec.point.Retrying++
		}
		return
	}
	// Within one host the handshake of a connect() is over before another
	// client gets the CPU. Repeated SYNs leave as a batch from the timer
	// softirq, and on a network a round trip lies in between: those SYNs all
	// meet the same accept queue.
	first := s.in.RoundTrip == 0 && c.tries == 0
	s.believes(c, stateHandshake)
	c.cookie = cookie
	c.connected = s.now + s.halfTrip
	if s.in.TimeoutFromConnect {
		s.setDeadline(i, after(c.connected, s.in.ClientTimeout))
	}
	if !cookie {
		s.syns.len++
		s.syns.young++
	}
	if first {
		s.finalACK(i)
		return
	}
	s.timers.set(timerFinalACK, s.now+s.in.RoundTrip, i)
}

// admits says whether a SYN is answered, and whether with a cookie. The SYN
// queue is checked first.
func (s *planSim) admits() (cookie, ok bool) {
	full := s.syns.full(s.backlog, s.in.SmallSynQueue)
	switch {
	case full && !s.in.Syncookies: // TCPReqQFullDrop
		s.plan.Dropped.SynQueue++
		return false, false
	case s.acceptQueueFull(): // ListenOverflows
		return false, false
	case !s.in.Syncookies && s.syns.crowded(s.in.MaxSynBacklog):
		s.plan.Dropped.SynQueue++
		return false, false
	}
	return full, true
}

// acceptQueueFull is sk_acceptq_is_full.
func (s *planSim) acceptQueueFull() bool { return s.accepts.len() > s.backlog }

// finalACK completes a handshake when the accept queue has room, and is
// dropped otherwise (tcp_v4_syn_recv_sock), together with the request's bytes
// right behind it. The client has been connected since the SYN+ACK.
func (s *planSim) finalACK(i int32) {
	c := &s.clients[i]
	if c.left { // its kernel answered the SYN+ACK with an RST
		s.forget(c)
		c.state = stateClosed
		return
	}
	if s.enqueue(i, true) {
		return
	}
	if s.in.AbortOnOverflow && !c.cookie { // tcp_check_req: embryonic_reset
		s.plan.Dropped.ACK++
		s.forget(c)
		s.reset(i)
		return
	}
	s.plan.Dropped.ACK += 2
	s.believes(c, stateHalfOpen)
	if !c.cookie {
		s.timers.set(timerSynAck, fireAt(c.connected-s.halfTrip, second), i)
	}
	s.timers.set(timerData, fireAt(c.connected, s.data[0])+s.halfTrip, i)
}

// enqueue puts a completed connection into the accept queue; asked says that
// the request's bytes came with it.
func (s *planSim) enqueue(i int32, asked bool) bool {
	if s.acceptQueueFull() {
		return false
	}
	c := &s.clients[i]
	s.forget(c)
	s.believes(c, stateQueued)
	c.asked = asked
	s.accepts.push(i)
	if c.tries == 0 && !c.again && !s.in.LateAcceptor {
		s.accept()
	} else { // one softirq works off the whole batch before accept() gets its turn
		s.timers.set(timerAccept, s.now, i)
	}
	return true
}

// forget takes a client's half-open connection out of the SYN queue.
func (s *planSim) forget(c *planClient) {
	if c.cookie || c.expired {
		return
	}
	s.syns.len--
	if c.synAcks == 0 {
		s.syns.young--
	}
	c.expired = true
}

// synAckAgain is reqsk_timer_handler: it repeats the SYN+ACK, whose answer is
// one more chance for the final ACK, until it forgets the half-open
// connection. The answer carries no request bytes.
func (s *planSim) synAckAgain(i int32, k int) {
	c := &s.clients[i]
	if c.state != stateHalfOpen {
		return
	}
	if int(c.synAcks) >= s.syns.retries(s.backlog) {
		s.forget(c)
		return
	}
	if c.synAcks == 0 {
		s.syns.young--
	}
	c.synAcks++
	c.again = true
	s.timers.set(timerSynAck+planTimer(k)+1, fireAt(s.now, second<<c.synAcks), i)
	if !s.enqueue(i, false) {
		s.plan.Dropped.ACK++
	}
}

// dataAgain is the request's bytes sent once more. To a half-open connection,
// or to a cookie, they are also the final ACK; to one that the server has
// forgotten they are answered with an RST.
func (s *planSim) dataAgain(i int32, k int) {
	c := &s.clients[i]
	c.again = true
	switch c.state {
	case stateHalfOpen:
		if c.expired && !c.cookie {
			s.reset(i)
			return
		}
		if s.enqueue(i, true) {
			return
		}
		s.plan.Dropped.ACK++
		s.dataLater(i, k+1)
	case stateQueued:
		c.asked = true
	case stateSilent:
		s.ready(i)
	}
}

// dataLater sets the next repetition, unless the client's kernel has given up.
func (s *planSim) dataLater(i int32, k int) {
	c := &s.clients[i]
	if k == len(s.data) || c.left && k >= orphanRetries {
		s.forget(c)
		s.believes(c, stateClosed)
		if !c.left {
			s.outcome(&s.plan.Outcomes.ReadTimeout, s.now)
		}
		return
	}
	s.timers.set(timerData+planTimer(k), fireAt(s.now-s.halfTrip, s.data[k])+s.halfTrip, i)
}
