package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// threadsPerCore are runnable all the time in H5.
const threadsPerCore = 3

// busy is H5: every processor has runnable threads enough. The cause may be the
// processors: they are short.
func (s *scale) busy(ctx context.Context) error {
	l := limits{maxConnections: 20, acceptCount: 10}
	servers, err := startServers(ctx, 3, l, 15)
	defer stopAll(servers)
	if err != nil {
		return err
	}
	agent, err := s.startAgent(ctx, append(l.flags(), pids(servers)...)...)
	if err != nil {
		return err
	}
	defer agent.Kill()
	spinning, err := rig.StartChild(ctx, 0, "spin", fmt.Sprint(threadsPerCore*runtime.NumCPU()))
	if err != nil {
		return err
	}
	defer spinning.Stop()
	patients, share, err := s.trouble(ctx, agent, servers[:1])
	if err != nil {
		return err
	}
	p := patients[0]
	right := p.causeNow == rightCause || p.causeNow == "cpu_saturated"
	what := fmt.Sprintf("%d runnable threads a processor, one in trouble", threadsPerCore)
	s.report.add(
		row{
			Scenario: "H5", What: what + ": the verdict after ten seconds", Budget: "losing, " + rightCause + " or cpu_saturated",
			Ours: p.statusNow + ", " + p.causeNow, Met: p.statusNow == "losing" && right,
		},
		reportedRow("H5", what+": losing after the first drop", p.losing),
		reportedRow("H5", what+": "+rightCause+" after the first drop", p.cause),
		row{Scenario: "H5", What: what + ": share of a core over ten seconds of it", Budget: reported, Ours: percent(share)},
	)
	return nil
}
