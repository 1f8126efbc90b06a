package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

const (
	// connectionTimeout is how long the first request may take to arrive.
	connectionTimeout = 60 * time.Second
	// requestLimit bounds what is read for one request, body included.
	requestLimit = 1 << 20
)

// session is one accepted connection.
type session struct {
	server *Server
	conn   *net.TCPConn
	bytes  *io.LimitedReader
	in     *bufio.Reader
	first  bool
	stop   func() bool
}

func newSession(ctx context.Context, s *Server, conn *net.TCPConn) *session {
	limited := &io.LimitedReader{R: conn}
	return &session{
		server: s,
		conn:   conn,
		bytes:  limited,
		in:     bufio.NewReaderSize(limited, 1024),
		first:  true,
		stop:   context.AfterFunc(ctx, func() { _ = conn.Close() }),
	}
}

// await hands the connection to the workers once a request has arrived, or
// closes it. It is what Tomcat's Poller is for.
func (c *session) await() {
	if c.in.Buffered() == 0 && !c.readable() {
		c.close()
		return
	}
	c.server.ready <- c // never blocks: there is room for every slot
}

// readable waits for the first byte without taking it, so that a request which
// no worker has come for stays in the kernel's Recv-Q.
func (c *session) readable() bool {
	timeout := connectionTimeout
	if !c.first {
		timeout = c.server.o.KeepAlive
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(timeout))
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return false
	}
	var n int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, failed = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		return failed != syscall.EAGAIN
	})
	return err == nil && failed == nil && n > 0
}

// answer handles one request and reports whether the connection stays open.
func (c *session) answer(ctx context.Context) bool {
	c.first = false
	c.bytes.N = requestLimit
	_ = c.conn.SetReadDeadline(time.Now().Add(connectionTimeout))
	request, err := http.ReadRequest(c.in)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return false
	}
	if !sleep(ctx, c.serviceTime(request)) {
		return false
	}
	keep := c.server.o.KeepAlive > 0 && !request.Close
	if _, err := io.WriteString(c.conn, response(keep)); err != nil {
		return false
	}
	c.server.served.Add(1)
	return keep
}

func (c *session) serviceTime(r *http.Request) time.Duration {
	if ms, err := strconv.Atoi(r.URL.Query().Get("ms")); err == nil {
		return time.Duration(ms) * time.Millisecond
	}
	return c.server.o.ServiceTime
}

func response(keep bool) string {
	const body = "hello\n"
	connection := "close"
	if keep {
		connection = "keep-alive"
	}
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n%s",
		len(body), connection, body)
}

func (c *session) close() {
	c.stop()
	_ = c.conn.Close()
	c.server.connections.Add(-1)
	<-c.server.slots
}

// paceStep is about how often a paced stream moves on.
const paceStep = 50 * time.Millisecond

// slowly limits a stream to about rate bytes a second; 0 does not limit it.
func slowly(ctx context.Context, r io.Reader, rate int64) io.Reader {
	if rate <= 0 {
		return r
	}
	return &pacedReader{ctx: ctx, r: r, rate: rate, step: max(rate*int64(paceStep)/int64(time.Second), 1)}
}

type pacedReader struct {
	ctx  context.Context // an io.Reader has no other way to be cancelled
	r    io.Reader
	rate int64
	step int64 // most bytes of one read
	owed time.Duration
}

// Read first sits out the time that the last read's bytes take at the rate.
func (p *pacedReader) Read(b []byte) (int, error) {
	if !sleep(p.ctx, p.owed) {
		return 0, p.ctx.Err()
	}
	n, err := p.r.Read(b[:min(int64(len(b)), p.step)])
	p.owed = time.Duration(int64(n) * int64(time.Second) / p.rate)
	return n, err
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
