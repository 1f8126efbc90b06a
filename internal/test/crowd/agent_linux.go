package crowd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Agent is tcpdiag's, under measurement.
type Agent struct {
	*exec.Cmd
	address string
	client  *http.Client
	Started time.Time
}

// StartAgent returns when the program's agent is ready: its first scan is done.
func StartAgent(ctx context.Context, tcpdiag string, args ...string) (*Agent, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	all := append([]string{"agent", "--log-level", "error", "--web.listen-address", address}, args...)
	a := &Agent{Cmd: exec.CommandContext(ctx, tcpdiag, all...), address: address, client: &http.Client{Timeout: 5 * time.Second}}
	a.Stderr = os.Stderr
	a.Started = time.Now()
	if err := a.Start(); err != nil {
		return nil, err
	}
	return a, a.ready(ctx)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback, at once
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (a *Agent) ready(ctx context.Context) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(500 * time.Microsecond) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := a.Get(ctx, "/-/ready"); err == nil {
			return nil
		}
	}
	return fmt.Errorf("agent %v: not ready within 30 s", a.Args)
}

// Get is the body of an answer.
func (a *Agent) Get(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.address+path, nil)
	if err != nil {
		return "", err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, response.Status)
	}
	return string(body), err
}

// Patience is how long Get waits from now on.
func (a *Agent) Patience(d time.Duration) { a.client = &http.Client{Timeout: d} }

// Metric is the value of the first series of that name.
func (a *Agent) Metric(ctx context.Context, name string) (float64, error) {
	body, err := a.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(body) {
		rest, ok := strings.CutPrefix(line, name)
		if ok && (rest[0] == ' ' || rest[0] == '{') {
			return strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		}
	}
	return 0, fmt.Errorf("no metric %q", name)
}

// Stop kills it.
func (a *Agent) Stop() { End(a.Cmd) }
