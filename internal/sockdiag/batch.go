package sockdiag

import "syscall"

// maxBatch bounds the requests of one send: their replies wait together in the
// receive buffer, and what does not fit there is lost (net.core.rmem_default,
// 208 KiB, charged up to 2.3 KiB a reply).
const maxBatch = 32

// asks are several exact requests of one kind.
type asks interface {
	count() int
	// encode appends a request whose length is a multiple of four, as netlink
	// wants it; false for one that contradicts itself.
	encode(b []byte, i int) ([]byte, bool)
	// decode is given a reply, fail an error in its place; 0 is an
	// acknowledgement that was not asked for.
	decode(i int, body []byte)
	fail(i int, errno syscall.Errno)
}

// askEach works through the requests. The kernel works off all of one send
// (netlink_rcv_skb), so that each costs one system call instead of two: a third
// less for eight of them.
func (c *Conn) askEach(op string, all asks) error {
	if !c.proven { // else ENOENT says nothing
		if err := c.Probe(); err != nil {
			return err
		}
	}
	for from := 0; from < all.count(); from += maxBatch {
		b := batch{conn: c, asks: all, from: from, n: min(maxBatch, all.count()-from)}
		if err := b.run(); err != nil {
			return wrap(op, err)
		}
	}
	return nil
}

// batch is one send with several requests.
type batch struct {
	conn    *Conn
	asks    asks
	from, n int    // number of the first, and how many
	first   uint32 // its sequence number; the others follow
	waiting int    // for that many replies
}

func (b *batch) run() error {
	b.encode()
	if b.waiting == 0 {
		return nil
	}
	if err := b.conn.sock.sendAtOnce(b.conn.out); err != nil {
		return err
	}
	for b.waiting > 0 {
		buf, err := b.conn.receiveAtOnce()
		if err != nil {
			return err
		}
		for len(buf) > 0 {
			var m message
			if m, buf, err = nextMessage(buf); err != nil {
				return err
			}
			b.take(m)
		}
	}
	return nil
}

// encode writes the requests one behind the other.
func (b *batch) encode() {
	c := b.conn
	c.out = c.out[:0]
	b.first = c.seq + 1
	for i := range b.n {
		c.seq++
		start := len(c.out)
		out, ok := b.asks.encode(c.out, b.from+i)
		if !ok {
			b.asks.fail(b.from+i, syscall.EINVAL)
			continue
		}
		c.out = out
		finish(c.out[start:], c.seq)
		b.waiting++
	}
}

// take hands on one reply; late ones to earlier requests are none of this batch.
func (b *batch) take(m message) {
	i := m.seq - b.first
	if m.pid != b.conn.portID || i >= uint32(b.n) {
		return
	}
	switch m.typ {
	case nlmsgError:
		number, _ := m.number()
		b.waiting--
		b.asks.fail(b.from+int(i), number)
	case sockDiagByFamily:
		b.waiting--
		b.asks.decode(b.from+int(i), m.body)
	}
}

// refused is what a request is answered with in place of a socket.
func refused(op string, errno syscall.Errno) error {
	if errno == 0 {
		return wrap(op, ErrMalformed)
	}
	return wrap(op, errno)
}
