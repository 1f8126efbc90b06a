package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// watched is how many connections H2's server has.
const watched = 10_000

// endMemory is about what one end of an idle connection takes of the kernel:
// tcp_sock, its socket's inode and dentry, file and descriptor.
const endMemory = 5 << 10

// million is H2: one namespace with very many socket ends, of which one server's
// connections are watched; before, with those alone.
func (s *scale) million(ctx context.Context) error {
	ends, note, err := roomFor(s.Ends)
	if err != nil {
		return err
	}
	l := limits{maxConnections: watched, acceptCount: 100}
	one, err := startServer(ctx, 0, l, watched)
	if err != nil {
		return err
	}
	defer one.stop()
	agent, err := s.startAgent(ctx, append(l.flags(), "--port", fmt.Sprint(port))...)
	if err != nil {
		return err
	}
	defer agent.Kill()
	alone, err := s.calm(ctx, agent, s.Calm)
	if err != nil {
		return err
	}
	b := bulk{}
	defer b.stop()
	if err := b.grow(ctx, ends-2*watched); err != nil {
		return err
	}
	among, err := s.calm(ctx, agent, s.Calm)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s socket ends, %s connections watched", count(ends), count(watched))
	s.report.add(calmRow("H2", fmt.Sprintf("%s, calm: share of a core over %.0f s", name, s.Calm.Seconds()), among.share), oldestRow("H2", among.oldest))
	s.report.add(row{
		Scenario: "H2", What: "the same against the watched connections alone", Budget: "≤ 1.5 ×", Ours: fmt.Sprintf("%.2f ×", among.share/alone.share),
		Note: percent(alone.share) + " alone" + note, Met: among.share <= 1.5*alone.share,
	})
	patients, share, err := s.trouble(ctx, agent, []*server{one})
	if err != nil {
		return err
	}
	s.report.add(troubleRows("H2", "in trouble", patients, share)...)
	memory, err := memoryRow("H2", agent)
	s.report.add(memory)
	if err != nil {
		return err
	}
	agent.Kill()
	return s.sampled(ctx, one, ends)
}

// roomFor makes fewer of them where the memory does not hold as many.
func roomFor(ends int) (fit int, note string, err error) {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, "", err
	}
	_, rest, _ := strings.Cut(string(content), "MemAvailable:")
	var kilobytes int
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		return 0, "", fmt.Errorf("MemAvailable: %w", err)
	}
	if fit = kilobytes << 10 / 2 / endMemory; fit < ends {
		return fit, "; the memory does not hold " + count(ends), nil
	}
	return ends, "", nil
}
