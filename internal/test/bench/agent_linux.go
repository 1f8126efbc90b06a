package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// smallMemory is the resident memory with next to nothing to watch, after some
// scrapes, which allocate.
func (b *bench) smallMemory(ctx context.Context) error {
	if err := b.table.grow(ctx, 10); err != nil {
		return err
	}
	agent, err := rig.StartAgent(ctx, b.Tcpdiag, "--port", strconv.Itoa(watchedPort))
	if err != nil {
		return err
	}
	defer agent.Kill()
	for range 40 {
		if _, err := agent.Get(ctx, "/metrics"); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return b.memory(agent)
}

func (b *bench) memory(agent *rig.Agent) error {
	now, highest, err := rig.Resident(agent.Process.Pid)
	if err != nil {
		return err
	}
	files, err := rig.Shared(agent.Process.Pid)
	if err != nil {
		return err
	}
	b.report.add(row{
		What: "agent's resident memory with " + count(b.table.size) + " sockets", Budget: "≤ 30 MiB",
		Ours: mebibytes(now), Note: "highest " + mebibytes(highest) + "; " + mebibytes(files) + " of it the program's file", Met: highest <= 30<<20,
	})
	return nil
}

// processorTime runs the agent and the empty loops side by side: whatever
// disturbs one disturbs all.
func (b *bench) processorTime(ctx context.Context) error {
	if err := b.table.grow(ctx, min(1000, b.Sockets)); err != nil {
		return err
	}
	var commands []*exec.Cmd
	for _, args := range [][]string{{"tick", "10ms"}, {"tick", "10ms", "/proc/net/netstat"}, {"tick", "1ms"}, {"metronome", "10ms"}} {
		cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
		if err := cmd.Start(); err != nil {
			return err
		}
		defer rig.End(cmd)
		commands = append(commands, cmd)
	}
	for _, interval := range []string{"10ms", "1ms"} {
		agent, err := rig.StartAgent(ctx, b.Tcpdiag, "--port", strconv.Itoa(watchedPort), "--sample-interval", interval)
		if err != nil {
			return err
		}
		defer agent.Kill()
		commands = append(commands, agent.Cmd)
	}
	time.Sleep(2 * time.Second) // past the start
	used := make([][]time.Duration, len(commands))
	for range b.Turns {
		spent, err := spend(commands, b.Turn)
		if err != nil {
			return err
		}
		for i := range spent {
			used[i] = append(used[i], spent[i])
		}
	}
	share := func(i int) string { return percent(float64(median(used[i])) / float64(b.Turn)) }
	hundred, netstat, thousand := ratio(used[4], used[0]), ratio(used[1], used[0]), ratio(used[5], used[2])
	b.report.add(row{
		What:   "agent's processor time at 100 samples/s and 1 scan/s, " + count(b.table.size) + " sockets",
		Budget: "≤ 1.5 × an empty loop with a Go ticker of the same rate",
		Limit:  share(0), Ours: share(4), Ratio: times2(hundred),
		Note: "of a core; the agent has a timer that wakes less, " + times2(ratio(used[4], used[3])) + " an empty loop with that (" + share(3) +
			"); a Go ticker's loop that reads /proc/net/netstat: " + times2(netstat), Met: hundred <= 1.5,
	}, row{
		What: "the same at 1000 samples/s", Budget: reported, Limit: share(2), Ours: share(5), Ratio: times2(thousand), Note: "of a core",
	})
	return nil
}

// spend is what each process uses within the time.
func spend(commands []*exec.Cmd, during time.Duration) ([]time.Duration, error) {
	read := func() ([]time.Duration, error) {
		out := make([]time.Duration, len(commands))
		for i, c := range commands {
			var err error
			if out[i], err = rig.CPUTime(c.Process.Pid); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	before, err := read()
	if err != nil {
		return nil, err
	}
	time.Sleep(during)
	after, err := read()
	for i := range after {
		after[i] -= before[i]
	}
	return after, err
}

// start measures from the start of the process to the first scan's end, and to the
// first sample.
func (b *bench) start(ctx context.Context) error {
	for range b.Holders {
		holder, err := rig.StartChild(ctx, 0, "hold", strconv.Itoa(b.Files))
		if err != nil {
			return err
		}
		defer holder.Stop()
	}
	const interval = time.Millisecond
	var ready, first []time.Duration
	for range 9 {
		agent, err := rig.StartAgent(ctx, b.Tcpdiag, "--port", strconv.Itoa(watchedPort), "--sample-interval", interval.String(), "--scan-interval", "1m")
		if err != nil {
			return err
		}
		took := time.Since(agent.Started)
		sampled, err := firstSample(ctx, agent, interval)
		agent.Kill()
		if err != nil {
			return err
		}
		ready, first = append(ready, took), append(first, sampled)
	}
	took := median(first)
	b.report.add(row{
		What:   "from exec to the first sample: " + count(b.table.size) + " sockets, " + count(b.Holders) + " processes of " + count(b.Files) + " descriptors",
		Budget: "≤ 50 ms", Ours: brief(took), Note: "the first scan is done after " + brief(median(ready)), Met: took <= 50*time.Millisecond,
	})
	return nil
}

// firstSample is how long after its start an agent took the first sample: it goes back from
// the time of its snapshot by the ticks until then, those that were missed among them.
func firstSample(ctx context.Context, agent *rig.Agent, interval time.Duration) (time.Duration, error) {
	var values [3]float64
	for i, name := range []string{"tcpdiag_last_scan_timestamp_seconds", "tcpdiag_listener_accept_queue_fill_ratio_count", "tcpdiag_missed_ticks_total"} {
		var err error
		if values[i], err = agent.Metric(ctx, name); err != nil {
			return 0, err
		}
	}
	at, ticks := time.UnixMicro(int64(values[0]*1e6)), values[1]+values[2]
	return at.Sub(agent.Started) - time.Duration(ticks)*interval, nil
}

// longRunning lets an agent work on the full table: scrapes, memory, and what
// its scans take of a core. The one whose share is measured samples rarely.
func (b *bench) longRunning(ctx context.Context) error {
	port := strconv.Itoa(watchedPort)
	agent, err := rig.StartAgent(ctx, b.Tcpdiag, "--port", port)
	if err != nil {
		return err
	}
	defer agent.Kill()
	scanner, err := rig.StartAgent(ctx, b.Tcpdiag, "--port", port, "--sample-interval", "10s")
	if err != nil {
		return err
	}
	defer scanner.Kill()
	began := time.Now()
	var scrapes []time.Duration
	var work []usage
	for time.Since(began) < 7*b.Turn {
		start := time.Now()
		if _, err := agent.Get(ctx, "/metrics"); err != nil {
			return err
		}
		scrapes = append(scrapes, time.Since(start))
		used, err := rig.CPUTime(scanner.Process.Pid)
		if err != nil {
			return err
		}
		work = append(work, usage{time.Since(began), used})
		time.Sleep(10 * time.Millisecond)
	}
	share := shareOfBursts(work)
	interval, err := scanner.Metric(ctx, "tcpdiag_scan_interval_seconds")
	if err != nil {
		return err
	}
	missed, err := agent.Metric(ctx, "tcpdiag_missed_ticks_total")
	if err != nil {
		return err
	}
	ticks := time.Since(began).Seconds() * 100
	p99 := quantile(scrapes, 0.99)
	b.report.add(row{
		What: "/metrics, " + count(len(scrapes)) + " scrapes while " + count(b.table.size) + " sockets are scanned", Budget: "p99 ≤ 5 ms",
		Ours: brief(p99), Note: "median " + brief(median(scrapes)) + "; " + percent(missed/ticks) + " of the samples missed", Met: p99 <= 5*time.Millisecond,
	}, row{
		What: "the scans' share of a core, " + count(b.table.size) + " sockets", Budget: "never above 2 %: the interval stretches",
		Ours: percent(share), Note: fmt.Sprintf("the whole process; tcpdiag_scan_interval_seconds %.1f instead of 1", interval), Met: share <= 0.02,
	})
	return b.memory(agent)
}
