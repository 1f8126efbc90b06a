package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// port is where every server listens, in a namespace of its own.
const port = 8080

// limits are those of a server.
type limits struct{ maxConnections, acceptCount int }

// flags give the agent what the configuration of a Tomcat would.
func (l limits) flags() []string {
	return []string{"--max-connections", fmt.Sprint(l.maxConnections), "--accept-count", fmt.Sprint(l.acceptCount)}
}

// server stands for a Tomcat, with its clients.
type server struct {
	*rig.Child
	limits
	netns   uint64
	clients *rig.Child // inside
	burst   *rig.Child // in front of the door
	inside  int
}

// startServer starts one with a share of its connections in use, each with a
// request that is in service.
func startServer(ctx context.Context, flags uintptr, l limits, inside int) (*server, error) {
	child, err := rig.StartChild(ctx, flags, "serve", fmt.Sprint(l.acceptCount), fmt.Sprint(port))
	if err != nil {
		return nil, err
	}
	s := &server{Child: child, limits: l}
	id, err := netns.OfPID("/proc", s.PID())
	if err != nil {
		return nil, err
	}
	s.netns = uint64(id)
	if s.clients, err = rig.StartBeside(ctx, s.PID(), "dial"); err != nil {
		return nil, err
	}
	if s.burst, err = rig.StartBeside(ctx, s.PID(), "press"); err != nil {
		return nil, err
	}
	return s, s.enter(inside)
}

// enter lets clients in whose requests stay in service.
func (s *server) enter(n int) error {
	if n <= 0 {
		return nil
	}
	var both errgroup.Group
	both.Go(func() error { return s.Do(0, n, 1) })
	both.Go(func() error { return s.clients.Do(port, n, 1) })
	s.inside += n
	return both.Wait()
}

// overload fills the server to its maxConnections and puts more clients in front
// of it than its accept queue holds.
func (s *server) overload() error {
	if err := s.enter(s.maxConnections - s.inside); err != nil {
		return err
	}
	return s.burst.Do(port, 3*(s.acceptCount+1))
}

// relieve lets the clients in front of the door give up, and takes what they have
// left in the queue.
func (s *server) relieve() error {
	if err := s.burst.Do(port, 0); err != nil {
		return err
	}
	return s.Do(0, 0)
}

func (s *server) stop() {
	s.burst.Stop()
	s.clients.Stop()
	s.Stop()
}

// startServers starts n of them, each in a namespace of its own.
func startServers(ctx context.Context, n int, l limits, inside int) ([]*server, error) {
	servers := make([]*server, n)
	var starting errgroup.Group
	starting.SetLimit(4)
	for i := range servers {
		starting.Go(func() (err error) {
			servers[i], err = startServer(ctx, unix.CLONE_NEWNET, l, inside)
			return err
		})
	}
	return servers, starting.Wait()
}

func stopAll(servers []*server) {
	for _, s := range servers {
		if s != nil {
			s.stop()
		}
	}
}

// pids are the agent's targets.
func pids(servers []*server) (flags []string) {
	for _, s := range servers {
		flags = append(flags, "--pid", fmt.Sprint(s.PID()))
	}
	return flags
}
