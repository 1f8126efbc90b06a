package main

import (
	"context"
	"os/exec"
	"strconv"
)

// commands compares the one-shot snapshot with ss, whole processes both, output
// thrown away.
func (b *bench) commands(ctx context.Context) error {
	program := func(name string, args ...string) timed {
		return timed{name, func() error { return exec.CommandContext(ctx, name, args...).Run() }}
	}
	snapshot := program(b.Tcpdiag, "snapshot", "--interval", "0", "--port", strconv.Itoa(watchedPort))
	full, err := byTurns(5, 1, program("ss", "-tanHiem"), snapshot,
		program(b.Tcpdiag, "snapshot", "--interval", "0", "--all"))
	if err != nil {
		return err
	}
	gain := ratio(full[0], full[1])
	b.report.add(row{
		What: "snapshot --interval 0 --port N with " + count(b.table.size) + " sockets", Budget: "≥ 10 × faster than ss -tanHiem",
		Limit: brief(median(full[0])), Ours: brief(median(full[1])), Ratio: times2(gain) + " faster",
		Note: "--all (every connection is some listener's): " + brief(median(full[2])), Met: gain >= 10,
	})
	others := []timed{
		program("ss", "-tln"), program("ss", "-tan"), program("cat", "/proc/net/tcp"),
		{"bare LISTEN dump", func() error { return b.kernel.dump(dumpRequest(stateListen, extMemory, 0)) }},
		{"bare dump of everything", func() error { return b.kernel.dump(dumpRequest(statesConnected, 0, 0)) }},
	}
	taken, err := byTurns(3, 1, others...)
	if err != nil {
		return err
	}
	for i, name := range []string{"`ss -tln`", "`ss -tan`", "`cat /proc/net/tcp`", "a bare LISTEN dump", "a bare dump of every socket, without tcp_info"} {
		b.report.Others = append(b.report.Others, [2]string{name, brief(median(taken[i]))})
	}
	return nil
}
