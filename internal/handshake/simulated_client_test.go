package handshake

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/timers"
)

// start is connect(2). Linux repeats a SYN after 1, 2, 4 … s.
func (c *simulatedClient) start() {
	c.began = c.m.now
	c.syn(time.Second)
	c.m.after(c.connect, func() {
		if !c.connected && !c.dead {
			c.fail(outcome.GaveUp)
		}
	})
}

func (c *simulatedClient) syn(timeout time.Duration) {
	if c.connected || c.dead {
		return
	}
	c.in(packet.FlagSYN, c.isn, 0, 0)
	c.m.after(timeout, func() { c.syn(2 * timeout) })
}

func (c *simulatedClient) fail(how outcome.Outcome) {
	c.how, c.failed, c.dead, c.left = how, true, true, c.m.now
}

// receive is the client's kernel.
func (c *simulatedClient) receive(flags uint8, seq, ack uint32, payload int) {
	switch {
	case c.dead && flags&packet.FlagRST == 0:
		c.in(packet.FlagRST, ack, 0, 0)
	case c.dead:
	case flags&packet.FlagRST != 0 && c.closed:
		c.dead = true
	case flags&packet.FlagRST != 0:
		c.fail(outcome.Reset)
	case flags&packet.FlagSYN != 0 && !c.connected:
		c.connected, c.serverISN = true, seq
		c.ack()
		c.use()
	case flags&packet.FlagSYN != 0:
		c.ack()
	case c.connected:
		c.segment(flags, seq, ack, payload)
	}
}

func (c *simulatedClient) ack() { c.in(packet.FlagACK, c.isn+1+c.sent, c.serverISN+1+c.got, 0) }

// use sends the request, and waits.
func (c *simulatedClient) use() {
	if !c.check {
		c.sent = requestBytes
		c.send(c.m.rto())
	}
	c.m.after(c.read, func() {
		if !c.closed && !c.dead {
			c.close()
		}
	})
}

func (m *simulated) rto() time.Duration { return 200*time.Millisecond + 2*m.oneWay }

// send repeats what is not acknowledged, until its kernel has had enough.
func (c *simulatedClient) send(timeout time.Duration) {
	if c.dead || c.acked >= c.sent {
		return
	}
	most := 15
	if c.closed {
		most = 8 // tcp_orphan_retries
	}
	if c.repeats++; c.repeats > most {
		c.dead = true
		return
	}
	if !c.check && c.acked < requestBytes {
		c.in(packet.FlagACK, c.isn+1, c.serverISN+1+c.got, requestBytes)
		c.retransmitted = c.repeats > 1
	}
	if c.finSent && (c.check || c.acked >= requestBytes || c.repeats == 1) {
		c.in(packet.FlagFIN|packet.FlagACK, c.isn+c.sent, c.serverISN+1+c.got, 0)
	}
	c.m.after(timeout, func() { c.send(min(2*timeout, timers.MostData)) })
}

// close is close(2). The FIN waits for the acknowledgement of data that was repeated.
func (c *simulatedClient) close() {
	c.closed, c.left = true, c.m.now
	if !c.check && c.acked < requestBytes && c.retransmitted {
		c.pending = true
		return // see segment
	}
	c.fin()
}

func (c *simulatedClient) fin() {
	c.finSent = true
	c.sent++
	c.in(packet.FlagFIN|packet.FlagACK, c.isn+c.sent, c.serverISN+1+c.got, 0)
	if idle := c.acked >= c.sent-1; idle {
		c.repeats = 1
		timeout := c.m.rto()
		c.m.after(timeout, func() { c.send(2 * timeout) })
	}
}

func (c *simulatedClient) segment(flags uint8, seq, ack uint32, payload int) {
	if acked := ack - c.isn - 1; acked <= c.sent && acked > c.acked {
		c.acked = acked
		if acked == requestBytes {
			c.takenAt = c.m.now
		}
	}
	off := seq - c.serverISN - 1
	switch {
	case payload > 0 && c.closed: // TCPAbortOnData
		c.in(packet.FlagRST, ack, 0, 0)
		c.dead = true
		return
	case payload > 0 && off == c.got:
		c.got += uint32(payload)
		c.answered = true
	}
	ended := flags&packet.FlagFIN != 0 && off+uint32(payload) == c.got
	if ended {
		c.got++
	}
	if payload > 0 || flags&packet.FlagFIN != 0 {
		c.ack()
	}
	switch {
	case ended && !c.closed:
		c.close()
	case c.closed && !c.finSent && c.acked >= requestBytes:
		c.fin()
	}
	if c.finSent && c.acked >= c.sent && c.got > 0 {
		c.dead = true
	}
}
