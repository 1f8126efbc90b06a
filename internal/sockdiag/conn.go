package sockdiag

import (
	"errors"
	"syscall"
	"time"
)

// ReceiveTimeout is how long a request waits for the kernel. Replies are made
// while the request is sent, so only a kernel in trouble takes it.
const ReceiveTimeout = 2 * time.Second

// bufferLen is more than a netlink dump ever puts into one message: the kernel
// caps that at 32 KiB (netlink_recvmsg, max_recvmsg_len). A receive that fills
// the buffer was therefore cut.
const bufferLen = 64 << 10

// errState is a reply about a socket that does not listen.
var errState = errors.New("socket does not listen")

// Conn is one NETLINK_SOCK_DIAG socket. It sees the network namespace of the
// thread that called Dial, from whatever thread it is used. It is not safe for
// concurrent use.
type Conn struct {
	// OnRestart is called before a walk that the kernel cut short
	// (NLM_F_DUMP_INTR) is run again from its beginning: forget what the
	// callback has seen. Without it such a walk is not repeated.
	OnRestart func()

	sock     transport
	portID   uint32 // this end's netlink address; replies carry it
	seq      uint32 // of the last request
	out, in  []byte
	filter   portFilter
	listener Listener // reused for the callbacks
	socket   Socket
	proven   bool // a walk has succeeded: tcp_diag is there

	// onListener is the callback of the dump under way, takeListener the
	// method that feeds it, made once: a closure a dump would be garbage in a
	// loop that dumps a thousand times a second.
	onListener   func(*Listener) error
	takeListener func(body []byte) error
}

// Buffer is what replies are received in.
type Buffer [bufferLen]byte

// Dial opens the socket. It needs no privilege.
func Dial() (*Conn, error) { return DialShared(new(Buffer)) }

// DialShared is Dial for many sockets that are never used at the same time, nor
// in each other's callbacks: they receive into one buffer.
func DialShared(b *Buffer) (*Conn, error) {
	sock, portID, err := openTransport()
	if err != nil {
		return nil, wrap("dial", err)
	}
	return newConn(sock, portID, b), nil
}

func newConn(sock transport, portID uint32, b *Buffer) *Conn {
	c := &Conn{sock: sock, portID: portID, in: b[:]}
	c.takeListener = c.listenerFound
	return c
}

// Close frees the socket. Later calls answer ErrClosed.
func (c *Conn) Close() error {
	if err := c.sock.close(); err != nil {
		return wrap("close", err)
	}
	return nil
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

// notFound tells a missing listener from a missing tcp_diag module, which
// answers ENOENT as well.
func (c *Conn) notFound() error {
	if !c.proven {
		if err := c.Probe(); err != nil {
			return err
		}
	}
	return &Error{Op: "lookup", Errno: syscall.ENOENT, Err: ErrNotFound}
}

// Probe proves by a walk of the listeners that inet_diag and tcp_diag are
// there; ErrNotSupported if not.
func (c *Conn) Probe() error {
	restart := c.OnRestart
	c.OnRestart = func() {}
	defer func() { c.OnRestart = restart }()
	return c.Listeners(func(*Listener) error { return nil })
}

// Listeners calls fn for every LISTEN socket of both families. It asks for no
// other state, so the kernel does not touch the connection table. The Listener
// is reused: copy what is to be kept. An error of fn ends the walk and is
// returned as it is.
//
// ErrInterrupted: the kernel cut the walk short, repeatedly if OnRestart is
// set; fn has seen a part.
func (c *Conn) Listeners(fn func(*Listener) error) error {
	c.out = appendDump(c.out[:0], Listen.mask(), diagSKMemInfo, 0)
	c.onListener = fn
	err := c.walk("dump", c.takeListener)
	c.proven = c.proven || err == nil
	return err
}

func (c *Conn) listenerFound(body []byte) error {
	switch err := c.listener.decode(body); {
	case errors.Is(err, errState):
		return nil
	case err != nil:
		return wrap("dump", err)
	}
	return c.onListener(&c.listener)
}

// Sockets calls fn for every socket with one of the local ports in one of the
// states, of which Connected are all that make sense: one walk of the whole
// connection table, both families, filtered in the kernel. The Socket is reused:
// copy what is to be kept. Errors are those of Listeners; ErrNoPorts for no ports.
func (c *Conn) Sockets(ports []uint16, states States, fn func(*Socket) error) error {
	c.filter.set(ports)
	if len(c.filter.ports) == 0 {
		return &Error{Op: "scan", Err: ErrNoPorts}
	}
	single := c.filter.single()
	c.out = appendDump(c.out[:0], uint32(states), diagInfo, single)
	if single == 0 {
		c.out = appendPortFilter(c.out, c.filter.ranges)
	}
	return c.walk("scan", func(body []byte) error {
		if err := c.socket.decode(body); err != nil {
			return wrap("scan", err)
		}
		if !c.filter.has(c.socket.Local.Port()) {
			return nil
		}
		return fn(&c.socket)
	})
}
