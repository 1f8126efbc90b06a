package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Server admits clients like Tomcat's NioEndpoint: a slot is taken before
// accept() (countUpOrAwaitConnection), a connection's bytes stay unread until
// one of the worker threads is free, and the slot is given back on close.
type Server struct {
	o        ServerOptions
	listener *net.TCPListener
	slots    chan struct{} // one token for each connection held
	ready    chan *session // readable connections that wait for a worker

	running                             sync.WaitGroup
	busy, served, connections, accepted atomic.Int64
}

// ServerStats is what the server knows about itself: the truth that the
// kernel's figures can be held against.
type ServerStats struct {
	Connections int // accepted and not yet closed
	Busy        int // workers that handle a request
	Served      int // answers written since the start
}

// Listen opens the listener; clients queue from then on, and are accepted once
// Serve runs.
func Listen(ctx context.Context, o ServerOptions) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	l, err := listen(ctx, o.Address, o.AcceptCount)
	if err != nil {
		return nil, err
	}
	return &Server{
		o:        o,
		listener: l,
		slots:    make(chan struct{}, o.MaxConnections),
		ready:    make(chan *session, o.MaxConnections),
	}, nil
}

// Address is where the server listens.
func (s *Server) Address() netip.AddrPort {
	a := s.listener.Addr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Stats is a reading of the server while it runs.
func (s *Server) Stats() ServerStats {
	return ServerStats{
		Connections: int(s.connections.Load()),
		Busy:        int(s.busy.Load()),
		Served:      int(s.served.Load()),
	}
}

// Accepted is how many connections were, since the start.
func (s *Server) Accepted() int { return int(s.accepted.Load()) }

// Serve runs until ctx ends, which closes the listener and every connection,
// and returns nil then.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.drain()
	defer cancel()
	context.AfterFunc(ctx, func() { _ = s.listener.Close() })
	for range s.o.MaxThreads {
		s.running.Go(func() { s.work(ctx) })
	}
	return s.admit(ctx)
}

func (s *Server) admit(ctx context.Context) error {
	for {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		nc, err := s.accept(ctx)
		if ctx.Err() != nil {
			if err == nil {
				_ = nc.Close()
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		s.connections.Add(1)
		s.accepted.Add(1)
		c := newSession(ctx, s, nc)
		s.running.Go(c.await)
	}
}

// drain waits until nothing runs any more and closes what no worker came for.
func (s *Server) drain() {
	s.running.Wait()
	for {
		select {
		case c := <-s.ready:
			c.close()
		default:
			return
		}
	}
}

// accept backs off when the process is out of files, as Tomcat's Acceptor
// does: from 50 ms, doubling up to 1.6 s.
func (s *Server) accept(ctx context.Context) (*net.TCPConn, error) {
	const first, last = 50 * time.Millisecond, 1600 * time.Millisecond
	for pause := first; ; pause = min(2*pause, last) {
		nc, err := s.listener.AcceptTCP()
		if err == nil || ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nc, err
		}
		if !sleep(ctx, pause) {
			return nil, ctx.Err()
		}
	}
}

func (s *Server) work(ctx context.Context) {
	for {
		select {
		case c := <-s.ready:
			s.busy.Add(1)
			keep := c.answer(ctx)
			s.busy.Add(-1)
			if keep {
				s.running.Go(c.await)
			} else {
				c.close()
			}
		case <-ctx.Done():
			return
		}
	}
}

// sleep reports whether the whole time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ServerOptions are the limits of the embedded server, with Tomcat's names and
// meanings.
type ServerOptions struct {
	Address        string        // host:port to listen on; port 0 picks a free one
	MaxConnections int           // connections accepted and not yet closed (Tomcat's LimitLatch)
	AcceptCount    int           // backlog given to listen(2); the kernel clamps it to somaxconn
	MaxThreads     int           // requests worked on at the same time
	ServiceTime    time.Duration // how long the handler sleeps; a request's ?ms=N beats it
	// KeepAlive is how long a connection may stay idle between two requests; 0
	// answers "Connection: close".
	KeepAlive time.Duration
}

func (o ServerOptions) validate() error {
	for _, limit := range []struct {
		name  string
		value int
	}{
		{"max-connections", o.MaxConnections},
		{"accept-count", o.AcceptCount},
		{"max-threads", o.MaxThreads},
	} {
		if limit.value < 1 {
			return fmt.Errorf("demo: %s %d: must be at least 1", limit.name, limit.value)
		}
	}
	if o.ServiceTime < 0 {
		return fmt.Errorf("demo: service time %s: must not be negative", o.ServiceTime)
	}
	if o.KeepAlive < 0 {
		return fmt.Errorf("demo: keep-alive %s: must not be negative", o.KeepAlive)
	}
	return nil
}

// listen opens a listener with exactly the given backlog. net.Listen always
// asks for somaxconn; a second listen(2) on a socket that already listens does
// nothing but set sk_max_ack_backlog (inet_listen).
func listen(ctx context.Context, address string, backlog int) (*net.TCPListener, error) {
	var config net.ListenConfig
	// Plain TCP: an MPTCP listener's queue is that of a subflow socket.
	config.SetMultipathTCP(false)
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	tcp := l.(*net.TCPListener)
	if err := setBacklog(tcp, backlog); err != nil {
		_ = tcp.Close()
		return nil, fmt.Errorf("demo: listen on %s with backlog %d: %w", address, backlog, err)
	}
	return tcp, nil
}

func setBacklog(l *net.TCPListener, backlog int) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), backlog) }); err != nil {
		return err
	}
	return failed
}
