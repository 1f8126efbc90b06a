package main

import (
	"context"
	"fmt"
)

// node is H1: a host with many sockets and a server in each of many namespaces,
// of which one is overloaded, then three at once.
func (s *scale) node(ctx context.Context) error {
	l := limits{maxConnections: 20, acceptCount: 10}
	servers, err := startServers(ctx, s.Namespaces, l, 15)
	defer stopAll(servers)
	if err != nil {
		return err
	}
	b := bulk{}
	defer b.stop()
	if err := b.grow(ctx, s.Sockets-s.Namespaces*2*15); err != nil {
		return err
	}
	floor, err := bare(servers)
	if err != nil {
		return err
	}
	agent, err := s.startAgent(ctx, append(l.flags(), pids(servers)...)...)
	if err != nil {
		return err
	}
	defer agent.Kill()
	calm, err := s.calm(ctx, agent, s.Calm)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s sockets, %d namespaces, calm: share of a core over %.0f s", count(s.Sockets), s.Namespaces, s.Calm.Seconds())
	share := calmRow("H1", what, calm.share)
	share.Note = percent(floor) + " are the kernel's for the samples: their requests and replies alone, undecoded, made right before"
	s.report.add(startRow("H1", calm), share, oldestRow("H1", calm.oldest))
	for _, group := range []struct {
		name    string
		servers []*server
	}{{"one in trouble", servers[:1]}, {"three in trouble", servers[1:4]}} {
		patients, share, err := s.trouble(ctx, agent, group.servers)
		if err != nil {
			return err
		}
		s.report.add(troubleRows("H1", group.name, patients, share)...)
	}
	memory, err := memoryRow("H1", agent)
	s.report.add(memory)
	return err
}
