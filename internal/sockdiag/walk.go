package sockdiag

import (
	"errors"
	"syscall"
)

// maxRestarts bounds how often an interrupted walk is run again.
const maxRestarts = 3

// send gives the request in c.out a new sequence number and sends it.
func (c *Conn) send() error {
	c.seq++
	finish(c.out, c.seq)
	return c.sock.send(c.out)
}

// receive reads one datagram into the reused buffer; it holds one or more
// messages.
func (c *Conn) receive() ([]byte, error) {
	n, err := c.sock.receive(c.in)
	return c.received(n, err)
}

// receiveAtOnce is receive for the replies to LookupEach.
func (c *Conn) receiveAtOnce() ([]byte, error) {
	n, err := c.sock.receiveAtOnce(c.in)
	return c.received(n, err)
}

func (c *Conn) received(n int, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if n >= len(c.in) {
		return nil, ErrTruncated
	}
	return c.in[:n], nil
}

// mine distinguishes a reply to the last request from a late one to a request that
// timed out.
func (c *Conn) mine(m message) bool { return m.seq == c.seq && m.pid == c.portID }

// exchange sends the request in c.out and returns the body of its one reply,
// which is valid until the next receive.
func (c *Conn) exchange() ([]byte, error) {
	if err := c.send(); err != nil {
		return nil, err
	}
	for {
		buf, err := c.receive()
		if err != nil {
			return nil, err
		}
		for len(buf) > 0 {
			var m message
			if m, buf, err = nextMessage(buf); err != nil {
				return nil, err
			}
			switch {
			case !c.mine(m):
			case m.typ == nlmsgError:
				if err := m.errno(); err != nil {
					return nil, err
				}
				return nil, ErrMalformed // an acknowledgement that was not asked for
			case m.typ == sockDiagByFamily:
				return m.body, nil
			}
		}
	}
}

// walk runs the dump in c.out, again if it was interrupted.
func (c *Conn) walk(op string, fn func(body []byte) error) error {
	for try := 0; ; try++ {
		p := pass{conn: c, fn: fn}
		err := p.run()
		switch {
		case p.fnErr != nil:
			return p.fnErr
		case errors.Is(err, syscall.ENOENT):
			return &Error{Op: op, Errno: syscall.ENOENT, Err: ErrNoModule} // no handler: inet_diag_lock_handler
		case err != nil:
			return wrap(op, err)
		case !p.interrupted:
			return nil
		case c.OnRestart == nil || try == maxRestarts:
			return &Error{Op: op, Err: ErrInterrupted}
		}
		c.OnRestart()
	}
}

// pass is one run of a dump.
type pass struct {
	conn        *Conn
	fn          func(body []byte) error
	fnErr       error
	interrupted bool
}

func (p *pass) run() error {
	err := p.once()
	if errors.Is(err, syscall.EBUSY) {
		// An earlier dump whose reading failed is still running in the kernel
		// (netlink_sock.cb_running), and ends only by being read.
		if err := p.conn.drain(); err != nil {
			return err
		}
		err = p.once()
	}
	return err
}

// once sends the request and hands on the replies until NLMSG_DONE. After an
// error of fn it reads on, or the kernel would refuse the next dump.
func (p *pass) once() error {
	if err := p.conn.send(); err != nil {
		return err
	}
	for {
		buf, err := p.conn.receive()
		if err != nil {
			return err
		}
		for len(buf) > 0 {
			var m message
			if m, buf, err = nextMessage(buf); err != nil {
				return err
			}
			if !p.conn.mine(m) {
				continue
			}
			if done, err := p.message(m); done || err != nil {
				return err
			}
		}
	}
}

func (p *pass) message(m message) (done bool, err error) {
	p.interrupted = p.interrupted || m.flags&flagDumpIntr != 0
	switch m.typ {
	case nlmsgDone:
		return true, m.errno()
	case nlmsgError:
		return false, m.errno()
	case nlmsgOverrun:
		return false, ErrTruncated
	case tcpDiagGetSock:
		if p.fnErr == nil {
			p.fnErr = p.fn(m.body)
		}
	}
	return false, nil
}

// drain reads an abandoned dump to its end.
func (c *Conn) drain() error {
	for {
		buf, err := c.receive()
		if err != nil {
			return err
		}
		for len(buf) > 0 {
			var m message
			if m, buf, err = nextMessage(buf); err != nil {
				return err
			}
			if m.typ == nlmsgDone {
				return nil
			}
		}
	}
}
