package agent

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// sendBuffer and receiveBuffer are what the kernel holds of a connection; it doubles them for its
	// own bookkeeping.
	sendBuffer    = 64 << 10
	receiveBuffer = 32 << 10
	// mostUnread is how much a client may leave unread while it is read itself.
	mostUnread = 32 << 10
	// maxReading is how long a client may take to read a piece of an answer.
	maxReading = 10 * time.Second
	// piece is what it must read in that time.
	piece = 64 << 10
	// unreadEvery is how often it is looked at what a client has read.
	unreadEvery = 50 * time.Millisecond
)

// keepsUp waits until the client has read what it was sent, but for a little. The answers to
// what it sends meanwhile, as to the pings of HTTP/2, would pile up. False where it reads nothing.
func (c *boundedConn) keepsUp() bool {
	last, since := -1, time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, unreadEvery) {
		n := unread(c.Conn)
		switch {
		case n <= mostUnread:
			return true
		case n != last:
			last, since = n, time.Now()
		case time.Since(since) > maxReading:
			c.listener.share.Evicted(c.client)
			return false
		}
		select {
		case <-c.closed:
			return false
		case <-time.After(wait):
		}
	}
}

// Close implements net.Conn. What the client has not read stays in the kernel, which would hold it when
// nobody counts the connection any more: so it counts until that is read, and makes room first.
func (c *boundedConn) Close() error {
	c.listener.mu.Lock()
	_, counts := c.listener.conns[c]
	c.rests = counts && unread(c.Conn) > 0
	rests := c.rests
	c.listener.mu.Unlock()
	if !rests {
		c.apart()
		return c.shut()
	}
	c.closing.Do(func() { close(c.closed) })
	_ = c.SetDeadline(time.Now().Add(-time.Second)) // nobody reads or writes any more
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	go c.drain()
	return nil
}

// drain closes the connection once its client has read everything, or for long enough nothing.
func (c *boundedConn) drain() {
	untilRead(func() int { return unread(c.Conn) })
	c.apart()
	_ = c.shut()
}

// untilRead waits while less and less is left.
func untilRead(unread func() int) {
	for left, end := unread(), time.Now().Add(maxReading); left > 0 && time.Now().Before(end); {
		time.Sleep(unreadEvery)
		if n := unread(); n != left {
			left, end = n, time.Now().Add(maxReading)
		}
	}
}

// shut closes the connection, also while it waits to be read. What is unread goes with it.
func (c *boundedConn) shut() error {
	c.closing.Do(func() { close(c.closed) })
	if tcp, ok := c.Conn.(*net.TCPConn); ok && unread(c.Conn) > 0 {
		_ = tcp.SetLinger(0)
	}
	return c.Conn.Close()
}

// paced writes an answer by progress: each piece has its own time to be read.
type paced struct {
	w       http.ResponseWriter
	control *http.ResponseController

	mu      sync.Mutex
	givenUp bool
}

func newPaced(w http.ResponseWriter) *paced {
	return &paced{w: w, control: http.NewResponseController(w)}
}

var errGivenUp = errors.New("the answer was given up for another")

// Write implements io.Writer.
func (p *paced) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		if !p.extend() {
			return written, errGivenUp
		}
		n, err := p.w.Write(b[:min(len(b), piece)])
		written += n
		if err == nil {
			err = p.control.Flush() // what is in the server's own buffer waits here, too
		}
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}

// extend gives the next piece its time.
func (p *paced) extend() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.givenUp {
		_ = p.control.SetWriteDeadline(time.Now().Add(maxReading))
	}
	return !p.givenUp
}

// giveUp ends the writing.
func (p *paced) giveUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.givenUp = true
	_ = p.control.SetWriteDeadline(time.Now().Add(-time.Second))
}
