package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const tomcatPort = 8090

// turnSeconds is how long each agent runs. Short, as a loaded machine drifts:
// turns of one second differ from the next by 2 to 3 %, and turns of five seconds
// by no less. Not shorter than the scan interval: an agent that was stopped scans
// as soon as it continues, so that each turn has one scan, as it should.
const turnSeconds = 1

// tailSeconds and tailRounds are those of the turns in which wrk reports its p99.
const tailSeconds, tailRounds = 1, 6

// tomcat measures what a loaded Tomcat serves with an agent and
// without. The agents run all the time and are stopped and continued by turns:
// a stopped process costs nothing.
func (b *bench) tomcat(ctx context.Context) error {
	if err := withoutTimeWait(b.table.stop); err != nil {
		return err
	}
	if b.Tomcat == 0 {
		return nil
	}
	server, err := b.startTomcat(ctx)
	if err != nil {
		return err
	}
	defer rig.End(server)
	agents := []*rig.Agent{nil} // none
	for _, interval := range []string{"10ms", "1ms"} {
		a, err := rig.StartAgent(ctx, b.Tcpdiag, "--port", strconv.Itoa(tomcatPort), "--sample-interval", interval)
		if err != nil {
			return err
		}
		defer a.Kill()
		if err := a.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		agents = append(agents, a)
	}
	if _, err := wrk(ctx, 8); err != nil { // the compiler has work at first
		return err
	}
	turns, err := b.throughput(ctx, agents)
	if err != nil {
		return err
	}
	tails, err := b.tails(ctx, agents)
	if err != nil {
		return err
	}
	b.tomcatRows(turns, tails)
	return nil
}

// withoutTimeWait keeps the sockets that do closes from lingering in the
// namespace's table for a minute, where each scan would meet them.
func withoutTimeWait(do func()) error {
	const most = "/proc/sys/net/ipv4/tcp_max_tw_buckets"
	before, err := os.ReadFile(most)
	if err != nil {
		return err
	}
	if err := os.WriteFile(most, []byte("0"), 0o644); err != nil {
		return err
	}
	do()
	return os.WriteFile(most, before, 0o644)
}

// throughput counts what is served to one wrk, in turns that go over into one
// another. Every other turn is without an agent. The second, whose row holds no
// budget, has a quarter of the turns of the first.
func (b *bench) throughput(ctx context.Context, agents []*rig.Agent) ([]turn, error) {
	order := slices.Concat(slices.Repeat([]int{0, 1}, b.Tomcat), slices.Repeat([]int{0, 2}, b.Tomcat/4), []int{0})
	load := exec.CommandContext(ctx, "wrk", "-t1", "-c32", fmt.Sprintf("-d%ds", 2*len(order)*turnSeconds+30), tomcatURL())
	if err := load.Start(); err != nil {
		return nil, err
	}
	defer rig.End(load) // long before its time
	time.Sleep(2 * time.Second)
	turns := make([]turn, 0, len(order))
	for _, i := range order {
		t, err := oneTurn(ctx, agents[i])
		if err != nil {
			return nil, err
		}
		t.agent = i
		turns = append(turns, t)
	}
	return turns, nil
}

func oneTurn(ctx context.Context, agent *rig.Agent) (t turn, err error) {
	before, err := readCounts(ctx, agent)
	if err != nil {
		return t, err
	}
	if err := carryOn(agent); err != nil {
		return t, err
	}
	time.Sleep(turnSeconds * time.Second)
	if err := halt(agent); err != nil {
		return t, err
	}
	after, err := readCounts(ctx, agent)
	if err != nil {
		return t, err
	}
	elapsed := after.at.Sub(before.at)
	t.rate = (after.responses - before.responses) / elapsed.Seconds()
	t.share = float64(after.used-before.used) / float64(elapsed)
	return t, nil
}

// counts are taken at either end of a turn.
type counts struct {
	at        time.Time
	responses float64
	used      time.Duration // the agent's processor time
}

func readCounts(ctx context.Context, agent *rig.Agent) (t counts, err error) {
	if t.responses, err = responses(ctx); err != nil {
		return t, err
	}
	t.at = time.Now()
	if agent != nil {
		t.used, err = rig.CPUTime(agent.Process.Pid)
	}
	return t, err
}

// carryOn ends halt. A nil agent does neither.
func carryOn(a *rig.Agent) error { return signalled(a, syscall.SIGCONT) }

// halt stops the agent as it is.
func halt(a *rig.Agent) error { return signalled(a, syscall.SIGSTOP) }

func signalled(a *rig.Agent, s os.Signal) error {
	if a == nil {
		return nil
	}
	return a.Process.Signal(s)
}

// tails are the p99 of each agent's turns.
func (b *bench) tails(ctx context.Context, agents []*rig.Agent) ([][]time.Duration, error) {
	all := make([][]time.Duration, len(agents))
	for round := range tailRounds {
		for i := range agents {
			which := (i + round) % len(agents)
			if err := carryOn(agents[which]); err != nil {
				return nil, err
			}
			p99, err := wrk(ctx, tailSeconds)
			if err != nil {
				return nil, err
			}
			if err := halt(agents[which]); err != nil {
				return nil, err
			}
			all[which] = append(all[which], p99)
		}
	}
	return all, nil
}

func (b *bench) tomcatRows(turns []turn, tails [][]time.Duration) {
	for i, name := range []string{"100 samples/s", "1000 samples/s"} {
		ratios := besideNeighbours(turns, i+1)
		low, high := bounds(ratios)
		row := row{
			What: "Tomcat's throughput with the agent at " + name, Budget: "≥ 0.99 of that without",
			Limit: rateOf(turns, 0), Ours: rateOf(turns, i+1), Ratio: fmt.Sprintf("%.3f", median(ratios)),
			Note: fmt.Sprintf("median of %d turns, above %.3f and below %.3f at 95 %% each (turns without it beside one another: %.3f); p99 %.2f × that without, of %d turns; the agent took %s of a core",
				len(ratios), low, high, median(control(turns)), ratio(tails[i+1], tails[0]), len(tails[0]), percent(shareOf(turns, i+1))),
			Met: low >= 0.99, Unsure: high >= 0.99,
		}
		if i == 1 {
			row.Budget = reported
		}
		b.report.add(row)
	}
}

func rateOf(turns []turn, agent int) string {
	return count(int(median(valuesOf(turns, agent, func(t turn) float64 { return t.rate })))) + "/s"
}

func shareOf(turns []turn, agent int) float64 {
	return median(valuesOf(turns, agent, func(t turn) float64 { return t.share }))
}

func (b *bench) startTomcat(ctx context.Context) (*exec.Cmd, error) {
	// The serial collector, which Java takes by itself in a container with less
	// than two processors or 2 GB, disturbs the rate less than G1.
	cmd := exec.CommandContext(ctx, "java", "-Xmx512m", "-XX:+UseSerialGC", "-jar", b.Jar)
	cmd.Env = append(os.Environ(), "SERVER_PORT="+strconv.Itoa(tomcatPort), "MANAGEMENT_PORT="+strconv.Itoa(tomcatPort+1),
		"SERVER_TOMCAT_MBEANREGISTRY_ENABLED=true")
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
	rig.End(cmd)
	return nil, fmt.Errorf("%s: does not answer on port %d", b.Jar, tomcatPort)
}

func tomcatURL() string { return fmt.Sprintf("http://127.0.0.1:%d/hello?ms=0", tomcatPort) }

// responses is the number that Tomcat has sent (RequestGroupInfo, by Actuator).
func responses(ctx context.Context) (float64, error) {
	url := fmt.Sprintf("http://127.0.0.1:%d/actuator/metrics/tomcat.global.request", tomcatPort+1)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var metric struct {
		Measurements []struct {
			Statistic string
			Value     float64
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&metric); err != nil {
		return 0, fmt.Errorf("%s: %w", url, err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil { // to its end: closed before, the connection is reset
		return 0, fmt.Errorf("%s: %w", url, err)
	}
	for _, m := range metric.Measurements {
		if m.Statistic == "COUNT" {
			return m.Value, nil
		}
	}
	return 0, fmt.Errorf("%s: %s without COUNT", url, response.Status)
}

func wrk(ctx context.Context, seconds int) (p99 time.Duration, err error) {
	out, err := exec.CommandContext(ctx, "wrk", "-t1", "-c32", fmt.Sprintf("-d%ds", seconds), "--latency", tomcatURL()).Output()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w", err)
	}
	return parseTail(string(out))
}

func parseTail(out string) (p99 time.Duration, err error) {
	tail := regexp.MustCompile(`(?m)^\s*99%\s+([0-9.]+[a-z]+)`).FindStringSubmatch(out)
	if tail == nil {
		return 0, fmt.Errorf("wrk said %q", out)
	}
	return time.ParseDuration(tail[1])
}
