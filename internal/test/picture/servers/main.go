// Command servers are servers with Tomcat's limits in every state that tcpdiag reports, for
// its pictures: each on a port of its own, of 127.0.0.1 in the network namespace in which it
// is started. With "clients" it is their clients, with "files" the one server that is to have few files
// left, under a limit that the caller has set; with "calm" some 25 more that nobody asks. It ends with its standard input.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// state is a server and its clients.
type state struct {
	port, threads, queue int
	stuck                bool // it accepts nobody
	files                bool // it has a process of its own, in which files are scarce
	clients              demo.BurstOptions
}

func states() []state {
	const hour = time.Hour
	crowd := demo.BurstOptions{Clients: 5000, Rate: 10, Path: "/?ms=1000", ConnectTimeout: 2 * time.Second, RequestTimeout: 10 * time.Second}
	waiting := demo.BurstOptions{Clients: 30, Path: "/?ms=3600000", RequestTimeout: hour}
	nearly := demo.BurstOptions{Clients: 9, Path: "/?ms=3600000", RequestTimeout: hour}
	few := demo.BurstOptions{Clients: 3, Path: "/?ms=200", Requests: -1, Think: time.Second, RequestTimeout: hour}
	return []state{
		{port: 8081, threads: 4, queue: 5, clients: crowd},
		{port: 8082, threads: 4, queue: 50, clients: waiting},
		{port: 8083, threads: 10, queue: 5, files: true, clients: nearly},
		{port: 8084, threads: 4, queue: 100, clients: few},
		{port: 8086, threads: 4, queue: 5, stuck: true, clients: demo.BurstOptions{Clients: 8, Path: "/", RequestTimeout: hour}},
	}
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }()
	all, ctx := errgroup.WithContext(ctx)
	role := strings.Join(os.Args[1:], " ")
	if role == "calm" {
		for port := 8101; port <= 8125; port++ {
			all.Go(func() error { return (&state{port: port, threads: 4, queue: 100}).serve(ctx) })
		}
	}
	for _, s := range states() {
		switch {
		case role == "calm":
		case role == "clients":
			all.Go(func() error { _, err := demo.Burst(ctx, s.clientsOf()); return err })
		case s.files == (role == "files"):
			all.Go(func() error { return s.serve(ctx) })
		}
	}
	if err := all.Wait(); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

func (s *state) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *state) clientsOf() demo.BurstOptions {
	o := s.clients
	o.Address = s.address()
	return o
}

// serve serves until ctx is done.
func (s *state) serve(ctx context.Context) error {
	server, err := demo.Listen(ctx, demo.ServerOptions{
		Address: s.address(), MaxConnections: 20, AcceptCount: s.queue, MaxThreads: s.threads, KeepAlive: time.Hour,
	})
	if err != nil {
		return fmt.Errorf("port %d: %w", s.port, err)
	}
	if s.stuck {
		<-ctx.Done()
		runtime.KeepAlive(server)
		return nil
	}
	return server.Serve(ctx)
}
