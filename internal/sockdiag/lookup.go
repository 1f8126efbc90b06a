package sockdiag

import (
	"errors"
	"syscall"
)

// Ask is one exact request for a listener.
type Ask struct {
	ID    ListenerID
	Inode uint32 // 0 accepts any socket at the address
}

// Lookup asks for one listener by an exact request, which costs a hash lookup,
// and fills out. inode 0 accepts any socket at the address.
//
// ErrNotFound: nothing listens there, or what answered is another socket: an
// IPv4 request may be answered by a dual-stack [::] listener, and an
// SO_REUSEPORT group by any member, so such groups need Listeners.
func (c *Conn) Lookup(id ListenerID, inode uint32, out *Listener) error {
	if !id.valid() {
		return &Error{Op: "lookup", Errno: syscall.EINVAL}
	}
	c.out = appendLookup(c.out[:0], id)
	body, err := c.exchange()
	switch {
	case errors.Is(err, syscall.ENOENT):
		return c.notFound()
	case err != nil:
		return wrap("lookup", err)
	}
	if err := c.found(body, id, inode); err != nil {
		return err
	}
	*out = c.listener
	return nil
}

// LookupEach is Lookup for several listeners. fn is given the request's number,
// and either the listener, which is reused, or what Lookup would have answered.
//
// An error of the exchange itself is returned; fn has then not been called for
// every request.
func (c *Conn) LookupEach(asks []Ask, fn func(i int, l *Listener, err error)) error {
	c.lookups = listenerAsks{conn: c, asks: asks, fn: fn}
	return c.askEach("lookup", &c.lookups)
}

// listenerAsks are the requests of one LookupEach.
type listenerAsks struct {
	conn *Conn
	asks []Ask
	fn   func(i int, l *Listener, err error)
}

func (a *listenerAsks) count() int { return len(a.asks) }

func (a *listenerAsks) encode(b []byte, i int) ([]byte, bool) {
	if !a.asks[i].ID.valid() {
		return b, false
	}
	return appendLookup(b, a.asks[i].ID), true
}

func (a *listenerAsks) decode(i int, body []byte) {
	if err := a.conn.found(body, a.asks[i].ID, a.asks[i].Inode); err != nil {
		a.fn(i, nil, err)
		return
	}
	a.fn(i, &a.conn.listener, nil)
}

func (a *listenerAsks) fail(i int, errno syscall.Errno) {
	if errno == syscall.ENOENT {
		a.fn(i, nil, &Error{Op: "lookup", Errno: errno, Err: ErrNotFound})
		return
	}
	a.fn(i, nil, refused("lookup", errno))
}

// found decodes the reply to an exact request into c.listener, and compares it
// with what was asked for.
func (c *Conn) found(body []byte, id ListenerID, inode uint32) error {
	switch err := c.listener.decode(body); {
	case errors.Is(err, errState):
		return &Error{Op: "lookup", Err: ErrNotFound}
	case err != nil:
		return wrap("lookup", err)
	}
	if c.listener.ListenerID != id || inode != 0 && c.listener.Inode != inode {
		return &Error{Op: "lookup", Err: ErrNotFound}
	}
	return nil
}

func (id ListenerID) valid() bool {
	switch id.Family {
	case FamilyIPv4:
		return id.Local.Addr().Is4()
	case FamilyIPv6:
		return id.Local.Addr().Is6() && id.Local.Addr().Zone() == ""
	}
	return false
}

// notFound distinguishes a missing listener from a missing tcp_diag module, which
// answers ENOENT as well.
func (c *Conn) notFound() error {
	if !c.proven {
		if err := c.Probe(); err != nil {
			return err
		}
	}
	return &Error{Op: "lookup", Errno: syscall.ENOENT, Err: ErrNotFound}
}
