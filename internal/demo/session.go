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
