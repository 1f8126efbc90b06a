package demo

import (
	"context"
	"fmt"
	"net"
	"syscall"
)

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
