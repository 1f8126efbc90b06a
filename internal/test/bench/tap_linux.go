package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/crowd"
)

// tapTurnTime is that of a turn: short, as a busy machine drifts.
const tapTurnTime = 250 * time.Millisecond

// tapSettleTime is before it: a tap that was just opened takes memory, of which an agent's
// has enough. Beside 13,000 connections a second it takes 13 ms of processor time a second
// between a quarter and half a second after it was opened, and 6.5 ms from 0.6 seconds on.
// Without a tap there is only its end to wait for.
const tapSettleTime, restSettleTime = 600 * time.Millisecond, 50 * time.Millisecond

// measureTap writes TAP.md: what following handshakes costs a Tomcat at its
// fastest, and an agent.
func measureTap(ctx context.Context, o options) error {
	b := &bench{options: o, started: time.Now()}
	if err := furnish(); err != nil {
		return err
	}
	before := load()
	var failed error
	err := withoutTimeWait(func() {
		if failed = b.tapUnderTomcat(ctx); failed == nil {
			failed = b.tapUnderConnections(ctx)
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	text := fmt.Sprintf(tapIntro, "`", o.Tap, machine()[0][1], machine()[2][1], b.started.UTC().Format("2006-01-02 15:04 UTC"), before, load()) + b.report.budgets()
	fmt.Print(text)
	return os.WriteFile(filepath.Join(o.Out, "TAP.md"), []byte(text), 0o644)
}

const tapIntro = `# What following handshakes costs

Written by %[1]sgo run ./internal/test/bench -tap %[2]d%[1]s, as root. The load generator is in a network namespace of its own, joined by a veth, as clients are that come by a device; on the loopback each packet passes the tap twice, when it is sent and when it is received. The agent's own tap is opened and closed by turns beside one load that goes on, of which a quarter of a second is counted; each turn with it is compared with the turns before and after. While no client is in trouble the tap does not read what is sent; the rows “alert” are with everything read, as it is for ten seconds after any trouble. Requests for each second of processor time, of the JVM, the load generator and the tap together, do not depend on what else the machine does; requests a second do.

%[3]s, Linux %[4]s, %[5]s, load average %[6]s at the start and %[7]s at the end.

`

// tapUnderTomcat compares what Tomcat serves with the tap and without.
func (b *bench) tapUnderTomcat(ctx context.Context) error {
	server, err := b.startTomcat(ctx)
	if err != nil {
		return err
	}
	defer crowd.End(server)
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
		wall, cpu, err := b.tapTurns(ctx, server, turns, load.veth, load.alert, load.args)
		if err != nil {
			return fmt.Errorf("%s: %w", load.name, err)
		}
		b.tapRow("Tomcat's requests a second of processor time, "+load.name, load.least, cpu)
		b.tapRow("requests a second, "+load.name, load.least, wall)
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

func (b *bench) tapRow(what string, least float64, turns []turn) {
	ratios := besideNeighbours(turns, 1)
	calm := func(agent int) float64 {
		return quantile(valuesOf(turns, agent, func(t turn) float64 { return t.rate }), .75)
	}
	low, high := bounds(ratios)
	budget := reported
	if least > 0 {
		budget = fmt.Sprintf("≥ %.2f of that without the tap", least)
	}
	b.report.add(row{
		What: what, Budget: budget,
		Limit: rateOf(turns, 0), Ours: rateOf(turns, 1), Ratio: fmt.Sprintf("%.3f", median(ratios)),
		Note: fmt.Sprintf("median of %d turns, above %.3f and below %.3f at 95 %% each (turns without it beside one another: %.3f); the upper quartiles compared: %.3f",
			len(ratios), low, high, median(control(turns)), calm(1)/calm(0)),
		Met: median(ratios) >= least, Unsure: high >= least,
	})
}

// tapTurns are turns without the tap and with it: requests a second, and
// requests for each second of processor time.
func (b *bench) tapTurns(ctx context.Context, server *exec.Cmd, turns int, veth, alert bool, args []string) (wall, cpu []turn, err error) {
	args = append([]string{"-t1", "-c32", fmt.Sprintf("-d%ds", 3*turns+60)}, args...)
	start := startLoad
	if veth {
		start = startLoadAcross
	}
	load, err := start(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	defer crowd.End(load) // long before its time
	time.Sleep(2 * time.Second)
	pids := []int{server.Process.Pid, load.Process.Pid, os.Getpid()}
	for i := range 2*turns + 1 {
		w, c, err := tapTurn(ctx, i%2 == 1, alert, pids)
		if err != nil {
			return nil, nil, err
		}
		wall, cpu = append(wall, turn{agent: i % 2, rate: w}), append(cpu, turn{agent: i % 2, rate: c})
	}
	return wall, cpu, nil
}

func tapTurn(ctx context.Context, tapped, alert bool, pids []int) (wall, cpu float64, err error) {
	if !tapped {
		time.Sleep(restSettleTime)
		return served(ctx, pids)
	}
	tap, err := openTap(tomcatPort, !alert)
	if err != nil {
		return 0, 0, err
	}
	defer tap.Close()
	time.Sleep(tapSettleTime)
	if wall, cpu, err = served(ctx, pids); err != nil {
		return 0, 0, err
	}
	report, err := tap.Report()
	if err == nil && report.OneWay == alert {
		err = fmt.Errorf("the tap reads outgoing packets: %t", !report.OneWay)
	}
	return wall, cpu, err
}

// served is what Tomcat serves in a turn: requests a second, and requests for each second
// of processor time.
func served(ctx context.Context, pids []int) (wall, cpu float64, err error) {
	usedBefore, err := cpuTimes(pids)
	if err != nil {
		return 0, 0, err
	}
	before, err := readCounts(ctx, nil)
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(tapTurnTime)
	after, err := readCounts(ctx, nil)
	if err != nil {
		return 0, 0, err
	}
	used, err := cpuTimes(pids)
	n := after.responses - before.responses
	return n / after.at.Sub(before.at).Seconds(), n / (used - usedBefore).Seconds(), err
}

func cpuTimes(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		used, err := crowd.CPUTime(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
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
	return clients.NewOpener("/proc", proc)(clients.Where{NetNS: uint64(id), PID: os.Getpid(), Ports: []uint16{port}, Calm: calm})
}
