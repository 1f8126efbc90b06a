package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const agentAddress = "127.0.0.1:10889"

// agent is the built program, running in a namespace.
type agent struct {
	ns     *nettest.NS
	cmd    *exec.Cmd
	log    bytes.Buffer
	client *http.Client
	ended  chan error

	oldest time.Duration // snapshot that was served
}

// document is what is looked at of a snapshot.
type document struct {
	ScanAge     float64 `json:"scan_age_seconds"`
	Listeners   []struct{ Port int }
	Unavailable []struct{ What, Why string }
}

func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tcpdiag")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "github.com/tcpdiag/tcpdiag/cmd/tcpdiag")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

func startAgent(t *testing.T, ns *nettest.NS, program string) *agent {
	t.Helper()
	a := &agent{ns: ns, cmd: ns.Command(program, "agent", "--all", "--web.listen-address", agentAddress), ended: make(chan error, 1)}
	a.cmd.Stderr = &a.log
	a.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: a.dial, DisableKeepAlives: true}}
	require.NoError(t, a.cmd.Start())
	go func() { a.ended <- a.cmd.Wait() }()
	t.Cleanup(func() { _ = a.cmd.Process.Kill() })
	require.Eventually(t, func() bool { return a.try("/-/ready") == http.StatusOK }, time.Minute, 20*time.Millisecond)
	return a
}

func (a *agent) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	doErr := netns.Do(a.ns.Path(), func() error {
		c, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return c, doErr
}

// answered is how long the agent may take to answer beside an attacker.
const answered = 10 * time.Second

func (a *agent) try(path string) int {
	response, err := a.client.Get("http://" + agentAddress + path)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// get asks until it is answered: beside an attacker who fills the port a
// connection may be closed to make room for another one, and an answer be that
// too many are being made (503).
func (a *agent) get(t *testing.T, path string) string {
	t.Helper()
	var status int
	var body []byte
	var err error
	for deadline := time.Now().Add(answered); status != http.StatusOK && time.Now().Before(deadline); {
		status, body, err = a.ask(path)
	}
	require.NoError(t, err, "the agent does not answer")
	require.Equal(t, http.StatusOK, status, "%s", body)
	return string(body)
}

func (a *agent) ask(path string) (status int, body []byte, err error) {
	response, err := a.client.Get("http://" + agentAddress + path)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

func (a *agent) snapshot(t *testing.T) (document, string) {
	t.Helper()
	text := a.get(t, "/api/v1/snapshot")
	var d document
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	a.oldest = max(a.oldest, time.Duration(d.ScanAge*float64(time.Second)))
	return d, text
}

// peak is the most memory that the agent has had resident (VmHWM).
func (a *agent) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(a.cmd.Process.Pid) + "/status")
	require.NoError(t, err, "the agent has ended: %s", &a.log)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib / 1024
}

// missed are the samples that could not be taken in time.
func (a *agent) missed(t *testing.T) float64 {
	t.Helper()
	for line := range strings.Lines(a.get(t, "/metrics")) {
		if value, ok := strings.CutPrefix(line, "tcpdiag_missed_ticks_total "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(t, err)
			return n
		}
	}
	return 0
}

// stop ends the agent the way systemd and the kubelet do, and says how long it took.
func (a *agent) stop(t *testing.T) time.Duration {
	t.Helper()
	told := time.Now()
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-a.ended:
		require.NoError(t, err, "%s", &a.log)
	case <-time.After(time.Minute):
		t.Fatal("SIGTERM does not end the agent")
	}
	return time.Since(told)
}
