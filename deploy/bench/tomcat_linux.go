package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

const tomcatPort = 8090

// wrkSeconds is short, so that what disturbs the machine meets all alike, and not
// shorter: an agent that was stopped meanwhile does first what it does seldom.
const wrkSeconds = 2

// tomcat measures what a loaded Tomcat serves with an agent beside it and
// without. The agents run all the time and are stopped and continued by turns,
// in another order each round: a stopped process costs nothing.
func (b *bench) tomcat(ctx context.Context) error {
	b.table.stop()
	if b.Tomcat == 0 {
		return nil
	}
	server, err := b.startTomcat(ctx)
	if err != nil {
		return err
	}
	defer end(server)
	agents := []*program{nil} // none
	for _, interval := range []string{"10ms", "1ms"} {
		a, err := b.startAgent(ctx, "--port", strconv.Itoa(tomcatPort), "--sample-interval", interval)
		if err != nil {
			return err
		}
		defer a.stop()
		if err := a.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		agents = append(agents, a)
	}
	for range 8 { // the compiler has work at first
		if _, err := wrk(ctx, 1); err != nil {
			return err
		}
	}
	served := make([][]turn, len(agents))
	for round := range b.Tomcat {
		for i := range agents {
			which := (i + round) % len(agents)
			l, err := with(ctx, agents[which])
			if err != nil {
				return err
			}
			served[which] = append(served[which], l)
		}
	}
	b.tomcatRows(served)
	return nil
}

// with measures while one agent runs, or none.
func with(ctx context.Context, agent *program) (turn, error) {
	const settle = 100 * time.Millisecond // the same rest for all
	if agent == nil {
		time.Sleep(settle)
		return wrk(ctx, wrkSeconds)
	}
	if err := agent.Process.Signal(syscall.SIGCONT); err != nil {
		return turn{}, err
	}
	time.Sleep(settle)
	before, err := cpuTime(agent.Process.Pid)
	if err != nil {
		return turn{}, err
	}
	began := time.Now()
	l, err := wrk(ctx, wrkSeconds)
	if err != nil {
		return turn{}, err
	}
	after, err := cpuTime(agent.Process.Pid)
	if err != nil {
		return turn{}, err
	}
	l.share = float64(after-before) / float64(time.Since(began))
	return l, agent.Process.Signal(syscall.SIGSTOP)
}

func (b *bench) tomcatRows(served [][]turn) {
	for i, name := range []string{"100 samples/s", "1000 samples/s"} {
		var rates, tails, shares []float64
		for round := range served[0] {
			without, with := served[0][round], served[i+1][round]
			rates = append(rates, with.rate/without.rate)
			tails = append(tails, float64(with.p99)/float64(without.p99))
			shares = append(shares, with.share)
		}
		r := median(rates)
		row := row{
			What: "Tomcat's throughput with the agent at " + name, Budget: "≥ 0.99 of that without",
			Limit: rate(served[0]), Ours: rate(served[i+1]), Ratio: fmt.Sprintf("%.3f", r),
			Note: fmt.Sprintf("median of %d rounds ± %.3f; p99 %.2f × that without; the agent took %s of a core", len(rates), spread(rates), median(tails), percent(median(shares))),
			Met:  r-spread(rates) >= 0.99, Unsure: r+2*spread(rates) >= 0.99, // a median at the edge proves nothing
		}
		if i == 1 {
			row.Budget = reported
		}
		b.report.add(row)
	}
}

func rate(list []turn) string {
	rates := make([]float64, len(list))
	for i, l := range list {
		rates[i] = l.rate
	}
	return count(int(median(rates))) + "/s"
}

func (b *bench) startTomcat(ctx context.Context) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, "java", "-Xmx512m", "-jar", b.Jar)
	cmd.Env = append(os.Environ(), "SERVER_PORT="+strconv.Itoa(tomcatPort), "MANAGEMENT_PORT="+strconv.Itoa(tomcatPort+1))
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, tomcatURL(), nil)
		if err != nil {
			return nil, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return cmd, nil
		}
	}
	end(cmd)
	return nil, fmt.Errorf("%s: does not answer on port %d", b.Jar, tomcatPort)
}

func tomcatURL() string { return fmt.Sprintf("http://127.0.0.1:%d/hello?ms=0", tomcatPort) }

// turn is what one turn of wrk saw.
type turn struct {
	rate  float64 // responses a second
	p99   time.Duration
	share float64 // of a core, the agent's meanwhile
}

func wrk(ctx context.Context, seconds int) (turn, error) {
	out, err := exec.CommandContext(ctx, "wrk", "-t1", "-c32", fmt.Sprintf("-d%ds", seconds), "--latency", tomcatURL()).Output()
	if err != nil {
		return turn{}, fmt.Errorf("wrk: %w", err)
	}
	return parseWrk(string(out))
}

func parseWrk(out string) (l turn, err error) {
	tail := regexp.MustCompile(`(?m)^\s*99%\s+([0-9.]+[a-z]+)`).FindStringSubmatch(out)
	served := regexp.MustCompile(`(?m)^Requests/sec:\s+([0-9.]+)`).FindStringSubmatch(out)
	if tail == nil || served == nil {
		return l, fmt.Errorf("wrk said %q", out)
	}
	if l.p99, err = time.ParseDuration(tail[1]); err != nil {
		return l, err
	}
	l.rate, err = strconv.ParseFloat(served[1], 64)
	return l, err
}
