package handshake

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// receive is tcp_v4_rcv.
func (m *simulated) receive(c *simulatedClient, flags uint8, seq, ack uint32, payload int) {
	if c.deaf {
		c.lastSYN = m.now
	}
	switch {
	case flags&packet.FlagRST != 0:
		m.receiveRST(c)
	case flags&packet.FlagSYN != 0:
		m.receiveSYN(c)
	case c.socket != nil && !c.socket.gone:
		c.socket.receive(flags, seq, ack, payload)
	case c.socket != nil && c.socket.timeWait:
	case c.halfOpen && ack-c.halfISN-1 < 1<<31:
		m.complete(c, c.halfISN, true, flags, seq, ack, payload)
	case !c.halfOpen && c.cookieAt > 0 && m.now-c.cookieAt < time.Minute && ack-c.cookie-1 < 1<<31:
		m.complete(c, c.cookie, false, flags, seq, ack, payload)
	default:
		m.out(c, packet.FlagRST, ack, 0, 0)
	}
}

// full is sk_acceptq_is_full.
func (m *simulated) full() bool { return len(m.queue) > m.backlog }

// receiveSYN is tcp_conn_request.
func (m *simulated) receiveSYN(c *simulatedClient) {
	switch {
	case c.socket != nil:
	case c.halfOpen: // inet_rtx_syn_ack
		m.out(c, packet.FlagSYN|packet.FlagACK, c.halfISN, c.isn+1, 0)
	case m.full() || m.half >= m.backlog && m.cookies == 0:
		m.dropped++
	case m.cookies == 2 || m.half >= m.backlog:
		m.cookiesSent++
		c.cookieAt = m.now
		if c.cookie == 0 {
			c.cookie = m.rand.Uint32() | 1
		}
		m.out(c, packet.FlagSYN|packet.FlagACK, c.cookie, c.isn+1, 0)
	default:
		c.halfOpen, c.halfISN = true, m.rand.Uint32()|1
		m.half++
		m.out(c, packet.FlagSYN|packet.FlagACK, c.halfISN, c.isn+1, 0)
		m.repeatSYNACK(c, c.halfISN, time.Second, 0)
	}
}

// repeatSYNACK is reqsk_timer_handler. While more than half of the queue is in use, less is
// repeated.
func (m *simulated) repeatSYNACK(c *simulatedClient, isn uint32, timeout time.Duration, repeated int) {
	m.after(timeout, func() {
		most := m.retries
		if 2*m.half > m.backlog {
			most = min(most, leastRetries)
		}
		switch {
		case !c.halfOpen || c.halfISN != isn:
		case repeated >= most:
			c.halfOpen = false
			m.half--
		default:
			m.out(c, packet.FlagSYN|packet.FlagACK, isn, c.isn+1, 0)
			m.repeatSYNACK(c, isn, 2*timeout, repeated+1)
		}
	})
}

// complete is tcp_check_req, and cookie_v4_check.
func (m *simulated) complete(c *simulatedClient, isn uint32, half bool, flags uint8, seq, ack uint32, payload int) {
	if m.full() {
		if m.dropped++; half && m.abort {
			c.halfOpen = false
			m.half--
			m.out(c, packet.FlagRST, isn+1, 0, 0)
		}
		return
	}
	if half {
		c.halfOpen = false
		m.half--
	}
	m.opened++
	k := &simulatedSocket{c: c, isn: isn, made: m.now, byData: payload > 0 || flags&packet.FlagFIN != 0}
	c.socket, c.made, c.hasMade = k, m.now, true
	m.queue = append(m.queue, k)
	k.receive(flags, seq, ack, payload)
	m.accept()
}

func (m *simulated) receiveRST(c *simulatedClient) {
	if c.halfOpen {
		c.halfOpen = false
		m.half--
	}
	if k := c.socket; k != nil && !k.gone {
		k.gone = true
		k.release()
	}
}

// accept is the server's acceptor, which comes soon.
func (m *simulated) accept() {
	m.after(time.Millisecond, func() {
		for m.taken < m.slots && len(m.queue) > 0 {
			k := m.queue[0]
			m.queue = m.queue[1:]
			m.taken++
			k.accepted, k.held = true, true
			if k.gone {
				k.release()
				continue
			}
			k.wake()
		}
	})
}

// release gives the slot back.
func (k *simulatedSocket) release() {
	if m := k.c.m; k.held {
		k.held = false
		m.taken--
		m.accept()
	}
}

// wake is the server's selector: there is a request, or the client's end.
func (k *simulatedSocket) wake() {
	switch m := k.c.m; {
	case !k.accepted || k.finOut || k.gone:
	case k.data > 0:
		k.accepted = false // once
		m.ready = append(m.ready, k)
		m.work()
	case k.finIn:
		k.close(0)
	}
}

func (m *simulated) work() {
	for m.busy < m.threads && len(m.ready) > 0 {
		k := m.ready[0]
		m.ready = m.ready[1:]
		m.busy++
		m.after(m.service, func() {
			m.busy--
			if k.gone {
				k.release()
			} else {
				k.close(answerBytes)
			}
			m.work()
		})
	}
}

// close sends the answer and a FIN, until they are acknowledged.
func (k *simulatedSocket) close(answer uint32) {
	m := k.c.m
	k.finOut = true
	k.sent = answer + 1
	if answer > 0 {
		k.lastSent = m.now
	}
	k.release()
	k.send(200*time.Millisecond + 2*m.oneWay)
}

func (k *simulatedSocket) send(timeout time.Duration) {
	m := k.c.m
	if k.gone || k.acked >= k.sent {
		return
	}
	if k.timeout++; k.timeout > 8 {
		k.gone = true
		return
	}
	if k.sent > 1 && k.acked < k.sent-1 {
		m.out(k.c, packet.FlagACK, k.isn+1, k.c.isn+1+k.got, answerBytes)
	}
	m.out(k.c, packet.FlagFIN|packet.FlagACK, k.isn+k.sent, k.c.isn+1+k.got, 0)
	m.after(timeout, func() { k.send(2 * timeout) })
}

// receive is tcp_rcv_established and tcp_rcv_state_process.
func (k *simulatedSocket) receive(flags uint8, seq, ack uint32, payload int) {
	m, off := k.c.m, seq-k.c.isn-1
	k.segments++
	if payload > 0 {
		k.withData++
	}
	if acked := ack - k.isn - 1; acked < 1<<31 {
		k.acked = max(k.acked, acked)
	}
	if payload > 0 && off == k.got {
		k.got += uint32(payload)
		k.data += uint32(payload)
	}
	if flags&packet.FlagFIN != 0 && off+uint32(payload) == k.got && !k.finIn {
		k.finIn = true
		k.got++
	}
	if payload > 0 || flags&packet.FlagFIN != 0 {
		m.out(k.c, packet.FlagACK, k.isn+1+min(k.sent, k.acked), k.c.isn+1+k.got, 0)
	}
	k.wake()
	if k.finOut && k.acked >= k.sent && k.finIn {
		k.gone = true
		k.timeWait = k.sent > 1 // the server closed first
	}
}
