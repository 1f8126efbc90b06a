package main

import (
	"context"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// Ports: the watched server's, and those of the servers that fill the table.
const (
	watchedPort = 8080
	otherPort   = 9000
)

// perProcess is how many connections one process holds: within 20,000
// descriptors, and a tenth of a table of 190,000 sockets.
const perProcess = 19_000

// table is the connections: pairs of processes, one for each end. The first
// pair's server is the one that tcpdiag watches.
type table struct {
	pairs []*pair
	size  int // sockets, both ends
}

type pair struct {
	port           int
	server, client *rig.Child
	connections    int
}

// grow opens connections until the table has that many sockets; a tenth of them
// belongs to the watched server.
func (t *table) grow(ctx context.Context, sockets int) error {
	if len(t.pairs) == 0 {
		if err := t.add(ctx, watchedPort); err != nil {
			return err
		}
	}
	if err := t.pairs[0].open(sockets/10 - t.pairs[0].connections); err != nil {
		return err
	}
	t.count()
	for next := 1; t.size+1 < sockets; next++ {
		if next == len(t.pairs) {
			if err := t.add(ctx, otherPort+next); err != nil {
				return err
			}
		}
		p := t.pairs[next]
		if err := p.open(min(perProcess-p.connections, (sockets-t.size)/2)); err != nil {
			return err
		}
		t.count()
	}
	return nil
}

func (t *table) add(ctx context.Context, port int) error {
	server, err := rig.StartChild(ctx, 0, "serve", "4096", strconv.Itoa(port))
	if err != nil {
		return err
	}
	client, err := rig.StartChild(ctx, 0, "dial")
	if err != nil {
		server.Stop()
		return err
	}
	t.pairs = append(t.pairs, &pair{port: port, server: server, client: client})
	return nil
}

// stop ends the processes, and with them their sockets.
func (t *table) stop() {
	for _, p := range t.pairs {
		p.server.Stop()
		p.client.Stop()
	}
	t.pairs, t.size = nil, 0
}

func (t *table) count() {
	t.size = 0
	for _, p := range t.pairs {
		t.size += 2 * p.connections
	}
}

// open makes n more connections; both ends exist when it returns.
func (p *pair) open(n int) error {
	if n <= 0 {
		return nil
	}
	var both errgroup.Group
	both.Go(func() error { return p.server.Do(0, n) })
	both.Go(func() error { return p.client.Do(p.port, n) })
	if err := both.Wait(); err != nil {
		return fmt.Errorf("%d connections to port %d: %w", n, p.port, err)
	}
	p.connections += n
	return nil
}
