package agent

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// maxConnections is how many connections one port holds.
const maxConnections = 64

// busyAnswer is what a connection gets for which there is no room.
const busyAnswer = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// minWork is how long a request that has come whole may be worked on before its
// connection makes room for another of the same client.
const minWork = time.Second

// boundedListener accepts every connection and holds at most maxConnections of
// them. For a new one it closes one of the client that has most: one that is closed already and not yet
// read, else the oldest that waits for a request, else the one that has been answered for longest. So a client that
// opens connections without end closes its own, whatever it sends or does not read, and
// another's scrape gets in.
type boundedListener struct {
	net.Listener
	// tls: a refusal cannot be written before the handshake.
	tls    bool
	share  *shares.Resource
	intake *intake

	mu    sync.Mutex
	conns map[*boundedConn]struct{}
}

func newBoundedListener(l net.Listener, ledger *shares.Ledger) *boundedListener {
	return &boundedListener{
		Listener: l, share: ledger.Resource("connections"), intake: newIntake(ledger.Resource("intake")),
		conns: map[*boundedConn]struct{}{},
	}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !l.opens(clientOf(c)) {
			_ = c.Close()
			continue
		}
		if b := l.admit(c); b != nil {
			return b, nil
		}
		if !l.tls {
			_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = c.Write([]byte(busyAnswer))
		}
		_ = c.Close()
	}
}

// Close implements net.Listener: what still waits for a request is closed soon
// after. http.Server.Shutdown takes a connection whose first request does not end
// for a busy one, for five seconds (http.StateNew).
func (l *boundedListener) Close() error {
	time.AfterFunc(requestTimeout, l.dismiss)
	return l.Listener.Close()
}

func (l *boundedListener) dismiss() {
	l.mu.Lock()
	var waiting []*boundedConn
	for c := range l.conns {
		if c.waits {
			waiting = append(waiting, c)
		}
	}
	l.mu.Unlock()
	for _, c := range waiting {
		_ = c.Close()
	}
}

// opens reports whether another connection of a client is to be looked at: what one address can
// open by the thousand costs others the processor, whatever is sent.
func (l *boundedListener) opens(client string) bool {
	if l.intake.of(client).whole.AllowN(time.Now(), connectionCost) {
		return true
	}
	l.mu.Lock()
	has := 0
	for c := range l.conns {
		if c.client == client {
			has++
		}
	}
	l.mu.Unlock()
	if has < maxConnections/2 {
		return true
	}
	l.share.Refused(client)
	return false
}

// admit takes a connection, or answers nil where there is no room for it.
func (l *boundedListener) admit(c net.Conn) *boundedConn {
	b := &boundedConn{Conn: c, listener: l, client: clientOf(c), since: time.Now(), waits: true, closed: make(chan struct{})}
	b.intake = l.intake.of(b.client)
	boundBuffers(c)
	l.mu.Lock()
	var out *boundedConn
	if len(l.conns) >= maxConnections {
		if out = l.dispensable(b); out == nil {
			l.mu.Unlock()
			l.share.Refused(b.client)
			return nil
		}
		delete(l.conns, out)
	}
	l.conns[b] = struct{}{}
	l.mu.Unlock()
	if out != nil {
		l.share.Evicted(out.client)
		_ = out.shut()
	}
	return b
}

// dispensable is what makes room for a newcomer: of the clients that would have most
// connections with it. Where they would not have more than the newcomer's, what has just begun to
// be answered stays.
func (l *boundedListener) dispensable(newcomer *boundedConn) *boundedConn {
	count := map[string]int{newcomer.client: 1}
	most := 0
	for c := range l.conns {
		count[c.client]++
	}
	for _, n := range count {
		most = max(most, n)
	}
	var out *boundedConn
	for c := range l.conns {
		if count[c.client] == most && (out == nil || c.before(out)) {
			out = c
		}
	}
	if out != nil && !out.waits && count[newcomer.client] == most && newcomer.since.Sub(out.since) < minWork {
		return nil
	}
	return out
}

// boundedConn is a connection that its listener knows.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	client   string
	intake   *portion
	received int // by the one goroutine that reads

	closing sync.Once
	closed  chan struct{}

	// since it waits for a request, or is answered; the listener's lock is for both.
	since time.Time
	waits bool
	rests bool // it is closed, and its client has not read all
}

// before says that a connection makes room earlier than another one.
func (c *boundedConn) before(other *boundedConn) bool {
	if c.rests != other.rests {
		return c.rests
	}
	if c.waits != other.waits {
		return c.waits
	}
	return c.since.Before(other.since)
}

// Read implements net.Conn, as fast as the client may be read and reads itself.
func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n <= 0 {
		return n, err
	}
	if !c.keepsUp() {
		return 0, net.ErrClosed
	}
	cost := max(n, intakeLeast)
	free := !c.listener.tls && c.received+n <= intakeFree
	if c.listener.tls && c.received == 0 {
		cost += handshakeCost
	}
	c.received = min(c.received+n, 2*intakeFree)
	if free {
		c.intake.whole.AllowN(time.Now(), cost)
		return n, err
	}
	if !c.listener.intake.wait(c.intake, c.client, cost, c.closed) {
		return 0, net.ErrClosed
	}
	return n, err
}

// noteState is for http.Server.ConnState: a connection is active from when its
// request was read until the answer is written.
func noteState(c net.Conn, state http.ConnState) {
	b, ok := boundedOf(c)
	if !ok {
		return
	}
	b.listener.mu.Lock()
	defer b.listener.mu.Unlock()
	b.waits, b.since = state != http.StateActive, time.Now()
}

func boundedOf(c net.Conn) (*boundedConn, bool) {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok { // tls.Conn
		c = wrapped.NetConn()
	}
	b, ok := c.(*boundedConn)
	return b, ok
}

// connKey is the context's key of a request's connection.
type connKey struct{}

// withConn is for http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// boundedBy is a request's connection, nil where it is not one of a boundedListener.
func boundedBy(r *http.Request) *boundedConn {
	c, _ := r.Context().Value(connKey{}).(net.Conn)
	b, _ := boundedOf(c)
	return b
}

// apart takes a connection out of those of the port.
func (c *boundedConn) apart() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	delete(c.listener.conns, c)
}

// clientOf is whose connection it is.
func clientOf(c net.Conn) string { return shares.Client(c.RemoteAddr().String()) }
