// Package sockdiag asks the kernel for TCP sockets: inet_diag over netlink
// (linux/inet_diag.h). It encodes and decodes the messages itself, over one
// reused buffer: an exact request for a listener or a connection allocates
// nothing, and a walk of the socket table nothing per socket.
//
// No request needs a privilege. All see the network namespace of the thread
// that called Dial.
package sockdiag

import (
	"errors"
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
	ports    *Ports   // of Sockets
	listener Listener // reused for the callbacks
	socket   Socket
	proven   bool // a walk has succeeded: tcp_diag is there

	lookups     listenerAsks // of the call under way
	connections connectionAsks

	// onListener is the callback of the dump under way, takeListener the
	// method that feeds it, made once: a closure a dump would be garbage in a
	// loop that dumps a thousand times a second.
	onListener   func(*Listener) error
	takeListener func(body []byte) error
}

// Buffer is what replies are received in, and the ports that are asked for.
type Buffer struct {
	in    [bufferLen]byte
	ports Ports
}

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
	c := &Conn{sock: sock, portID: portID, in: b.in[:], ports: &b.ports}
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
	c.out = appendDump(c.out[:0], Listen.mask(), extension(diagSKMemInfo), 0)
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
