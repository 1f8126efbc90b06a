package demo

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// errGaveUp marks a request that its client ended on purpose.
var errGaveUp = errors.New("the client gave up")

// client is one client's life: connect, its requests, close.
func (l *Load) client(ctx context.Context) {
	start := time.Now()
	l.update(func(p *Progress) { p.Started++; p.Connecting++ })
	raw, err := l.connect(ctx)
	if err != nil {
		l.update(func(p *Progress) { p.Connecting--; p.add(connectOutcome(ctx, err), 0, err) })
		return
	}
	l.update(func(p *Progress) { p.Connecting--; p.Open++ })
	// Ending the run must wake a client that waits for an answer.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	l.converse(ctx, raw, start)
	stop()
	_ = raw.Close()
	l.update(func(p *Progress) { p.Open-- })
}

// connect leaves out the kernel's keep-alive probes: they would disturb the
// ages that distinguish an idle connection from a busy one.
func (l *Load) connect(ctx context.Context) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: l.o.ConnectTimeout, KeepAlive: -1}
	conn, err := dialer.DialContext(ctx, "tcp", l.o.Address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

func (l *Load) converse(ctx context.Context, raw *net.TCPConn, start time.Time) {
	e := exchange{o: &l.o, raw: raw, conn: raw, request: l.request}
	if l.o.TLS != nil {
		e.conn = tls.Client(raw, l.o.TLS)
	}
	e.in = bufio.NewReaderSize(slowly(ctx, e.conn, l.o.ReadRate), 512)
	for i := 0; l.o.Requests < 0 || i < l.o.Requests; i++ {
		if i > 0 {
			if !sleep(ctx, l.o.Think) {
				return
			}
			start = time.Now()
		}
		err := e.run(ctx)
		latency := time.Since(start)
		if l.o.Requests < 0 && ctx.Err() != nil {
			return // the run's end is this client's normal end
		}
		l.update(func(p *Progress) { p.add(exchangeOutcome(ctx, err), latency, err) })
		if err != nil {
			return
		}
	}
}

// exchange is a connection seen from the client: one request, one answer.
type exchange struct {
	o       *BurstOptions
	raw     *net.TCPConn
	conn    net.Conn // raw, or TLS over it
	in      *bufio.Reader
	request string
}

func (e *exchange) run(ctx context.Context) error {
	if e.o.RequestTimeout > 0 {
		_ = e.conn.SetDeadline(time.Now().Add(e.o.RequestTimeout))
	}
	if err := e.send(ctx); err != nil {
		return err
	}
	if e.o.ResetAfter > 0 {
		return e.reset(ctx)
	}
	method := http.MethodGet
	if e.o.Body > 0 {
		method = http.MethodPost
	}
	answer, err := http.ReadResponse(e.in, &http.Request{Method: method})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}

func (e *exchange) send(ctx context.Context) error {
	if _, err := io.WriteString(e.conn, e.request); err != nil {
		return err
	}
	if e.o.Body > 0 {
		body := slowly(ctx, io.LimitReader(zeros{}, e.o.Body), e.o.BodyRate)
		if _, err := io.Copy(e.conn, body); err != nil {
			return err
		}
	}
	if e.o.HalfClose {
		return e.raw.CloseWrite()
	}
	return nil
}

func (e *exchange) reset(ctx context.Context) error {
	sleep(ctx, e.o.ResetAfter)
	_ = e.raw.SetLinger(0)
	_ = e.raw.Close()
	return errGaveUp
}

// head is the request's head, cut in the middle for HalfHeader.
func head(o BurstOptions) string {
	var b strings.Builder
	method := http.MethodGet
	if o.Body > 0 {
		method = http.MethodPost
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, o.Path, o.Address)
	if o.HalfHeader {
		return b.String()
	}
	if o.Body > 0 {
		fmt.Fprintf(&b, "Content-Type: application/octet-stream\r\nContent-Length: %d\r\n", o.Body)
	}
	if o.Requests == 1 {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	return b.String()
}

// connectOutcome says why a connection could not be opened.
func connectOutcome(ctx context.Context, err error) Outcome {
	var timeout interface{ Timeout() bool }
	switch {
	case ctx.Err() != nil:
		return Unfinished
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.ECONNRESET):
		return Reset
	case errors.As(err, &timeout) && timeout.Timeout(): // the deadline, or the kernel's own ETIMEDOUT
		return ConnectTimeout
	default: // EADDRNOTAVAIL, EMFILE, ENETUNREACH
		return Local
	}
}

// exchangeOutcome says why a request on an open connection got no answer.
func exchangeOutcome(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return OK
	case ctx.Err() != nil || errors.Is(err, errGaveUp):
		return Unfinished
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return ReadTimeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Closed
	default:
		return BadAnswer
	}
}
