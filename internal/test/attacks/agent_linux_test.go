package attacks

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const agentAddress = "127.0.0.1:10889"

// agent is the built program, running as a viewer with the manifests' memory.
type agent struct {
	ns     *nettest.NS
	cmd    *exec.Cmd
	group  *group
	log    buffer
	client *http.Client
	ended  chan error
	tls    bool
}

// buffer is a log that is read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) Bytes() []byte { return []byte(b.String()) }

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// programs is the folder of what is built for all tests of this process.
func programs() string { return filepath.Join(os.TempDir(), fmt.Sprintf("attacks-%d", os.Getpid())) }

// build builds the program where everybody may run it, once for all tests.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(programs(), "tcpdiag")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "github.com/tcpdiag/tcpdiag/cmd/tcpdiag")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// public is a folder that everybody can reach; TempDir's parent is root's alone.
func public(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "attacks")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

func startAgent(t *testing.T, ns *nettest.NS, v viewer, program string, more ...string) *agent {
	t.Helper()
	return startAgentWith(t, ns, v, program, nil, more...)
}

// startAgentWith starts the agent by another command line.
func startAgentWith(t *testing.T, ns *nettest.NS, v viewer, program string, by []string, more ...string) *agent {
	t.Helper()
	a := &agent{ns: ns, group: newGroup(t), ended: make(chan error, 1)}
	a.tls = slices.ContainsFunc(more, func(arg string) bool { return strings.HasPrefix(arg, "--web.config.file=") })
	args := append([]string{"agent", "--web.listen-address", agentAddress}, more...)
	line := slices.Concat(by, v.line(a.group, ns, program, args...))
	a.cmd = exec.CommandContext(t.Context(), line[0], line[1:]...)
	a.cmd.Stderr = &a.log
	a.client = &http.Client{Timeout: answered, Transport: &http.Transport{DialContext: a.dial, DisableKeepAlives: true}}
	require.NoError(t, a.cmd.Start())
	done := make(chan struct{})
	go func() { a.ended <- a.cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = a.cmd.Process.Kill(); <-done })
	a.group.measure()
	t.Cleanup(a.group.end)
	require.Eventually(t, func() bool {
		status, _, _ := a.ask("/-/ready")
		return status == http.StatusOK
	}, 2*time.Minute, 20*time.Millisecond, "%s", &a.log)
	return a
}

func (a *agent) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	doErr := netns.Do(a.ns.Path(), func() error {
		c, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return a.secured(c), doErr
}

// secured speaks TLS where the agent does; its certificate is nobody's.
func (a *agent) secured(c net.Conn) net.Conn {
	if c == nil || !a.tls {
		return c
	}
	return tls.Client(c, &tls.Config{InsecureSkipVerify: true})
}

// answered is how long the agent may take to answer during an attack.
const answered = 30 * time.Second

// get asks until it is answered: while an attacker fills the port, a
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
	require.NoError(t, err, "the agent does not answer: %s", &a.log)
	require.Equal(t, http.StatusOK, status, "%s", body)
	return string(body)
}

func (a *agent) ask(path string) (status int, body []byte, err error) {
	request, err := http.NewRequest(http.MethodGet, "http://"+agentAddress+path, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	response, err := a.client.Do(authorised(request))
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// document is what is read of a snapshot.
type document struct {
	Time      time.Time
	Listeners []struct {
		Port        int
		NetNS       uint64
		AcceptQueue struct{ Length int } `json:"accept_queue"`
		Connector   struct {
			MaxConnections, AcceptCount, MaxThreads *struct{ Value int }
		}
	}
	Unavailable []struct{ What, Why string }
}

func decode(t *testing.T, text string) *document {
	t.Helper()
	var d document
	text = strings.NewReplacer(`"max_connections"`, `"MaxConnections"`, `"accept_count"`, `"AcceptCount"`, `"max_threads"`, `"MaxThreads"`).Replace(text)
	require.NoError(t, json.Unmarshal([]byte(text), &d), "%.300s", text)
	return &d
}

// metric is the value of a series without labels.
func (a *agent) metric(t *testing.T, name string) float64 {
	t.Helper()
	return a.metrics(t, name)[0]
}

// metrics are the values of several, of one moment.
func (a *agent) metrics(t *testing.T, names ...string) []float64 {
	t.Helper()
	text, out := a.get(t, "/metrics"), make([]float64, len(names))
	for i, name := range names {
		_, rest, found := strings.Cut(text, "\n"+name+" ")
		require.True(t, found, "no such metric: %s", name)
		value, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		require.NoError(t, err)
		out[i] = n
	}
	return out
}

// resident is the most memory that the agent alone has had (VmHWM, its program
// included).
func (a *agent) resident(t *testing.T) int64 {
	t.Helper()
	return a.memory(t, "VmHWM:")
}

// memory is a line of the agent's status.
func (a *agent) memory(t *testing.T, line string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(a.cmd.Process.Pid) + "/status")
	require.NoError(t, err, "the agent has ended: %s", &a.log)
	_, rest, _ := strings.Cut(string(status), line)
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kib << 10
}

// stop ends the agent the way systemd and the kubelet do, and says how long it took.
func (a *agent) stop(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-a.ended:
		require.NoError(t, err, "%s", &a.log)
	case <-time.After(2 * time.Minute):
		require.Fail(t, "SIGTERM does not end the agent", "%s", &a.log)
	}
	return time.Since(begin)
}
