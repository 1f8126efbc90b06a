package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// published is what the agent says of one namespace at one moment.
type published struct {
	drops, queue  uint64
	status, cause string

	connectionsAge time.Duration
	inService      int
	samplingError  int // 0 where each connection was counted
}

// answer is what an agent publishes.
type answer struct {
	by                    map[uint64]published // by network namespace
	metricsAt, snapshotAt time.Time            // when they were there
	of                    time.Time            // the snapshot's own time
}

// look asks the agent for everything. The times are those of the answers, so that
// an answer that comes late is held against the agent.
func look(ctx context.Context, agent *rig.Agent) (a answer, err error) {
	a.by = make(map[uint64]published)
	metrics, err := agent.Get(ctx, "/metrics")
	if err != nil {
		return a, fmt.Errorf("/metrics: %w", err)
	}
	a.metricsAt = time.Now()
	for line := range strings.Lines(string(metrics)) {
		addSeries(a.by, line)
	}
	body, err := agent.Get(ctx, "/api/v1/snapshot")
	if err != nil {
		return a, fmt.Errorf("snapshot: %w", err)
	}
	a.snapshotAt = time.Now()
	var snapshot api.Snapshot
	if err := json.Unmarshal(body, &snapshot); err != nil {
		return a, fmt.Errorf("snapshot: %w", err)
	}
	for _, l := range snapshot.Listeners {
		p := a.by[l.NetNS]
		p.status, p.cause = l.Verdict.Status, l.Verdict.Cause
		if c := l.Connections; c != nil && c.AgeSeconds != nil {
			p.connectionsAge = time.Duration(*c.AgeSeconds * float64(time.Second))
			p.inService, p.samplingError = c.InService, c.SubsetError
		}
		a.by[l.NetNS] = p
	}
	a.of = snapshot.Time
	return a, nil
}

// addSeries adds a line of /metrics to its namespace. What could not be attributed
// is seen, too.
func addSeries(by map[uint64]published, line string) {
	name, rest, ok := strings.Cut(line, "{")
	if !ok {
		return
	}
	_, after, ok := strings.Cut(rest, `netns="`)
	if !ok {
		return
	}
	id, _, _ := strings.Cut(after, `"`)
	ns, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
	if err != nil {
		return
	}
	p := by[ns]
	switch name {
	case "tcpdiag_listener_dropped_packets_total", "tcpdiag_netns_unattributed_dropped_packets_total":
		p.drops += uint64(value)
	case "tcpdiag_listener_accept_queue_length":
		p.queue += uint64(value)
	}
	by[ns] = p
}
