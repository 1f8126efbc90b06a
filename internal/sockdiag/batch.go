package sockdiag

import (
	"errors"
	"syscall"
)

// maxBatch bounds the requests of one send: their replies wait together in the
// receive buffer, and what does not fit there is lost (net.core.rmem_default,
// 208 KiB, charged about 1.3 KiB a reply).
const maxBatch = 32

// Ask is one exact request.
type Ask struct {
	ID    ListenerID
	Inode uint32 // 0 accepts any socket at the address
}

// LookupEach is Lookup for several listeners. The kernel works off all requests
// of one send (netlink_rcv_skb), so that each costs one system call instead of
// two: a third less for eight of them. fn is given the request's number, and
// either the listener, which is reused, or what Lookup would have answered.
//
// An error of the exchange itself is returned; fn has then not been called for
// every request.
func (c *Conn) LookupEach(asks []Ask, fn func(i int, l *Listener, err error)) error {
	if !c.proven { // else ENOENT says nothing
		if err := c.Probe(); err != nil {
			return err
		}
	}
	for from := 0; from < len(asks); from += maxBatch {
		b := batch{conn: c, asks: asks[from:min(from+maxBatch, len(asks))], from: from, fn: fn}
		if err := b.run(); err != nil {
			return wrap("lookup", err)
		}
	}
	return nil
}

// batch is one send with several requests.
type batch struct {
	conn    *Conn
	asks    []Ask
	from    int    // number of the first
	first   uint32 // its sequence number; the others follow
	waiting int    // for so many replies
	fn      func(i int, l *Listener, err error)
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

// encode writes the requests one behind the other; each has a length that is a
// multiple of four, as netlink wants it.
func (b *batch) encode() {
	c := b.conn
	c.out = c.out[:0]
	b.first = c.seq + 1
	for i := range b.asks {
		c.seq++
		if !b.asks[i].ID.valid() {
			b.fn(b.from+i, nil, &Error{Op: "lookup", Errno: syscall.EINVAL})
			continue
		}
		start := len(c.out)
		c.out = appendLookup(c.out, b.asks[i].ID)
		finish(c.out[start:], c.seq)
		b.waiting++
	}
}

// take hands on one reply; late ones to earlier requests are none of this batch.
func (b *batch) take(m message) {
	i := m.seq - b.first
	if m.pid != b.conn.portID || i >= uint32(len(b.asks)) {
		return
	}
	switch m.typ {
	case nlmsgError:
		b.waiting--
		b.fn(b.from+int(i), nil, lookupError(m.errno()))
	case sockDiagByFamily:
		b.waiting--
		if err := b.conn.found(m.body, b.asks[i].ID, b.asks[i].Inode); err != nil {
			b.fn(b.from+int(i), nil, err)
			return
		}
		b.fn(b.from+int(i), &b.conn.listener, nil)
	}
}

func lookupError(err error) error {
	switch {
	case err == nil: // an acknowledgement that was not asked for
		return wrap("lookup", ErrMalformed)
	case errors.Is(err, syscall.ENOENT):
		return &Error{Op: "lookup", Errno: syscall.ENOENT, Err: ErrNotFound}
	}
	return wrap("lookup", err)
}
