package rig

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Agent is a running `tcpdiag agent`.
type Agent struct {
	*exec.Cmd
	Address string
	PID     int
	Started time.Time
	client  *http.Client // nil of an agent that others started: defaultClient
	log     *bytes.Buffer
}

// StartAgent starts one that logs errors alone on a port that is free, and returns when
// its first scan is done.
func StartAgent(ctx context.Context, tcpdiag string, args ...string) (*Agent, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback, at once
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	_ = l.Close()
	all := append([]string{"agent", "--log-level", "error", "--web.listen-address", address}, args...)
	return RunAgent(ctx, address, exec.CommandContext(ctx, tcpdiag, all...))
}

// StartAgent starts an agent that serves on a port and waits until it is ready.
func (a Artifacts) StartAgent(ctx context.Context, port int, args ...string) (*Agent, error) {
	return a.StartAgentAs(ctx, nil, port, args...)
}

// StartAgentAs is the same as another user.
func (a Artifacts) StartAgentAs(ctx context.Context, user *syscall.Credential, port int, args ...string) (*Agent, error) {
	address := "127.0.0.1:" + strconv.Itoa(port)
	return RunAgent(ctx, address, a.Command(context.Background(), user, AgentArgs(address, args)...))
}

// AgentArgs are the arguments of one on an address.
func AgentArgs(address string, args []string) []string {
	return append([]string{"agent", "--web.listen-address", address}, args...)
}

// RunAgent runs a command that becomes an agent on an address.
func RunAgent(ctx context.Context, address string, cmd *exec.Cmd) (*Agent, error) {
	agent := &Agent{Cmd: cmd, Address: address, client: defaultClient(), log: new(bytes.Buffer)}
	agent.Stdout, agent.Stderr = agent.log, agent.log
	agent.Started = time.Now()
	if err := agent.Start(); err != nil {
		return nil, fmt.Errorf("rig: agent: %w", err)
	}
	agent.PID = agent.Process.Pid
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(500 * time.Microsecond) {
		_, err := agent.Get(ctx, "/-/ready")
		if err == nil {
			return agent, nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			_, _ = agent.Stop()
			return nil, fmt.Errorf("rig: agent is not ready: %w\n%s", err, agent.log)
		}
	}
}

// Patience is how long Get waits from now on.
func (a *Agent) Patience(d time.Duration) { a.client = &http.Client{Timeout: d} }

// Kill ends it at once.
func (a *Agent) Kill() {
	_ = a.Process.Kill()
	_ = a.Wait()
}

// Metric is the value of the first series of that name.
func (a *Agent) Metric(ctx context.Context, name string) (float64, error) {
	body, err := a.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(body)) {
		rest, ok := strings.CutPrefix(line, name)
		if ok && (rest[0] == ' ' || rest[0] == '{') {
			return strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		}
	}
	return 0, fmt.Errorf("no metric %q", name)
}

func defaultClient() *http.Client { return &http.Client{Timeout: 5 * time.Second} }

// Get answers the body of a page that must be there.
func (a *Agent) Get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.Address+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Close = true
	answer, err := cmp.Or(a.client, defaultClient()).Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s", path, answer.Status)
	}
	return body, err
}

// Snapshot is the agent's own document.
func (a *Agent) Snapshot(ctx context.Context) (*Document, error) {
	body, err := a.Get(ctx, "/api/v1/snapshot")
	if err != nil {
		return nil, err
	}
	return Decode(body)
}

// Metrics are the series of /metrics by name and labels, written as there:
// tcpdiag_target_up{netns="1",port="80"}.
func (a *Agent) Metrics(ctx context.Context) (Series, error) {
	body, err := a.Get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	out := make(Series)
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		line := lines.Text()
		name, value, ok := cutLast(line, " ")
		if strings.HasPrefix(line, "#") || !ok {
			continue
		}
		if out[name], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("rig: metrics: %q: %w", line, err)
		}
	}
	return out, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Series are metrics by name and labels.
type Series map[string]float64

// Find returns the one series of that name with all these labels, written
// `port="80"`.
func (s Series) Find(name string, labels ...string) (float64, bool) {
	var found []float64
	for series, value := range s {
		own, rest, _ := strings.Cut(series, "{")
		if own == name && containsAll(rest, labels) {
			found = append(found, value)
		}
	}
	if len(found) != 1 {
		return 0, false
	}
	return found[0], true
}

// Sum adds all series of that name with all these labels.
func (s Series) Sum(name string, labels ...string) float64 {
	var sum float64
	for series, value := range s {
		own, rest, _ := strings.Cut(series, "{")
		if own == name && containsAll(rest, labels) {
			sum += value
		}
	}
	return sum
}

func containsAll(s string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// Stop asks the agent to end and says how long that took.
func (a *Agent) Stop() (time.Duration, error) {
	start := time.Now()
	_ = a.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(5*time.Second, func() { _ = a.Process.Kill() })
	defer kill.Stop()
	if err := a.Wait(); err != nil {
		return time.Since(start), fmt.Errorf("rig: agent: %w\n%s", err, a.log)
	}
	return time.Since(start), nil
}
