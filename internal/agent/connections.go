package agent

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConnections is how many connections one port holds.
const maxConnections = 64

// busyAnswer is what a connection gets for which there is no room.
const busyAnswer = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// boundedListener accepts every connection and holds at most maxConnections of
// them: for a new one it closes the oldest that waits for a request, of the
// address that has most. So a client that opens connections without end closes its
// own, and a scrape gets in.
type boundedListener struct {
	net.Listener
	// tls: a refusal cannot be written before the handshake.
	tls bool

	mu    sync.Mutex
	conns map[*boundedConn]struct{}
}

func newBoundedListener(l net.Listener) *boundedListener {
	return &boundedListener{Listener: l, conns: map[*boundedConn]struct{}{}}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
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

// admit takes a connection, or answers nil when all others are at work.
func (l *boundedListener) admit(c net.Conn) *boundedConn {
	b := &boundedConn{Conn: c, listener: l, host: hostOf(c), since: time.Now(), waits: true}
	l.mu.Lock()
	var out *boundedConn
	if len(l.conns) >= maxConnections {
		if out = l.dispensable(); out == nil {
			l.mu.Unlock()
			return nil
		}
		delete(l.conns, out)
	}
	l.conns[b] = struct{}{}
	l.mu.Unlock()
	if out != nil {
		_ = out.Conn.Close()
	}
	return b
}

// dispensable is the oldest connection without a request, of the host that has
// most connections.
func (l *boundedListener) dispensable() *boundedConn {
	count := map[string]int{}
	for c := range l.conns {
		count[c.host]++
	}
	var out *boundedConn
	for c := range l.conns {
		switch {
		case !c.waits:
		case out == nil, count[c.host] > count[out.host], count[c.host] == count[out.host] && c.since.Before(out.since):
			out = c
		}
	}
	return out
}

// boundedConn is a connection that its listener knows.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	host     string

	// since it waits for a request, if it does; the listener's lock is for both.
	since time.Time
	waits bool
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
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

// apart serves what lasts, and has a bound of its own: its connection no longer
// counts among those of the port, and ends with it. Over HTTP/2 it has others'
// requests, too, and counts.
func apart(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(net.Conn)
		if b, ok := boundedOf(c); ok && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
			b.listener.mu.Lock()
			delete(b.listener.conns, b)
			b.listener.mu.Unlock()
		}
		h(w, r)
	}
}

func hostOf(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return host
}
