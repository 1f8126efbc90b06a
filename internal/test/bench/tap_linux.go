package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// measureTap writes bench-tap.md: what following handshakes costs a Tomcat at its
// fastest, and an agent.
func measureTap(ctx context.Context, o options) error {
	b := &bench{options: o, started: time.Now()}
	if err := furnish(); err != nil {
		return err
	}
	before := load()
	var failed error
	err := withoutTimeWait(func() {
		if !o.Hurry {
			failed = b.tapUnderTomcat(ctx)
		}
		if failed == nil {
			failed = b.tapUnderConnections(ctx)
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if o.Hurry {
		fmt.Print(b.report.budgets())
		return nil
	}
	text := fmt.Sprintf(tapIntro, "`", o.Tap, machine()[0][1], machine()[2][1], b.started.UTC().Format("2006-01-02 15:04 UTC"), before, load(),
		brief(tapTurnTime), brief(tapOwnTime), brief(tapSettleTime)) + b.report.budgets()
	fmt.Print(text)
	return os.WriteFile(filepath.Join(o.Out, "bench-tap.md"), []byte(text), 0o644)
}

const tapIntro = `# What following handshakes costs

Written by %[1]sgo run ./internal/test/bench -tap %[2]d%[1]s, as root. The load generator is in a network namespace of its own, joined by a veth, as clients are that come by a device; on the loopback each packet passes the tap twice, when it is sent and when it is received. The agent's own tap is opened and closed by turns beside one load that goes on, of which %[8]s are counted; each turn with it is compared with the turns before and after. While no client is in trouble the tap does not read what is sent; the rows “alert” are with everything read, as it is for ten seconds after any trouble. Requests for each second of processor time: of the JVM and the load generator in that turn, and of the process that has the tap, for each request, in %[9]s before the turns, when the tap has been open for %[10]s; within a turn the tap would still be taking its memory. Unlike requests a second, this does not depend on what else the machine does; the load keeps both processors busy, so it is the throughput of a machine that is full.

%[3]s, Linux %[4]s, %[5]s, load average %[6]s at the start and %[7]s at the end.

`

// tapUnderTomcat compares what Tomcat serves with the tap and without.
func (b *bench) tapUnderTomcat(ctx context.Context) error {
	server, err := b.startTomcat(ctx)
	if err != nil {
		return err
	}
	defer rig.End(server)
	if err := warm(ctx); err != nil {
		return err
	}
	for _, load := range []struct {
		name  string
		least float64 // 0 for no budget
		veth  bool
		alert bool
		args  []string
	}{
		{"keep-alive", .99, true, false, nil},
		{"keep-alive, on the loopback", .99, false, false, nil},
		{"a connection per request", .97, true, false, []string{"-H", "Connection: close"}},
		{"a connection per request, on the loopback", .97, false, false, []string{"-H", "Connection: close"}},
		{"a connection per request, alert", 0, true, true, []string{"-H", "Connection: close"}},
		{"a connection per request, on the loopback, alert", 0, false, true, []string{"-H", "Connection: close"}},
	} {
		turns := b.Tap
		if load.alert { // nothing depends on it
			turns = max(turns/4, 1)
		}
		rates, own, err := b.tapTurns(ctx, server, turns, load.veth, load.alert, load.args)
		if err != nil {
			return fmt.Errorf("%s: %w", load.name, err)
		}
		b.tapRow(load.name, load.least, rates, own)
	}
	return nil
}

// warm lasts until Java has compiled what is used most: its compiler's time would
// count as that of requests.
func warm(ctx context.Context) error {
	const enough, most = 400_000, 30 * time.Second
	for began, n := time.Now(), 0.0; n < enough && time.Since(began) < most; {
		if _, err := wrk(ctx, 5); err != nil {
			return err
		}
		var err error
		if n, err = responses(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) tapRow(load string, least float64, turns []turn, own time.Duration) {
	ratios := besideNeighbours(turns, 1)
	low, high := bounds(ratios)
	budget := reported
	if least > 0 {
		budget = fmt.Sprintf("≥ %.2f of that without the tap", least)
	}
	b.report.add(row{
		What: "Tomcat's requests a second of processor time, " + load, Budget: budget,
		Limit: rateOf(turns, 0), Ours: rateOf(turns, 1), Ratio: fmt.Sprintf("%.3f", median(ratios)),
		Note: fmt.Sprintf("median of %d turns, above %.3f and below %.3f at 95 %% each (turns without it beside one another: %.3f); the process with the tap took %d ns for each request",
			len(ratios), low, high, median(control(turns)), own.Nanoseconds()),
		Met: median(ratios) >= least, Unsure: high >= least,
	})
}

// openTap opens what an agent would, in this namespace, as it is while no client is in
// trouble, or as it is otherwise.
func openTap(port uint16, calm bool) (clients.Tap, error) {
	id, err := netns.Current()
	if err != nil {
		return nil, err
	}
	proc, err := hostproc.NewFS("/proc")
	if err != nil {
		return nil, err
	}
	return clients.NewOpener("/proc", proc)(clients.Where{NetNS: uint64(id), PIDs: []int{os.Getpid()}, Ports: []uint16{port}, Calm: calm})
}
