package cli

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// mainVariable makes this test's program be tcpdiag.
const mainVariable = "TCPDIAG_TEST_MAIN"

func TestMain(m *testing.M) {
	child := len(os.Args) > 1 && (os.Args[1] == command.DiscoverChild || os.Args[1] == command.MemoryChild) // which get no variable
	if os.Getenv(mainVariable) == "" && os.Getenv(victimVariable) == "" && !child {
		os.Exit(m.Run())
	}
	ctx := UntilSignal()
	if os.Getenv(victimVariable) != "" {
		os.Exit(serveVictim(ctx))
	}
	os.Exit(Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// tcpdiag is this test's program as tcpdiag, inside a namespace.
func tcpdiag(ns *nettest.NS, args ...string) *exec.Cmd {
	cmd := ns.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	return cmd
}

// begin starts a command, and returns when it has written its first line; it is killed at the end.
func begin(t *testing.T, cmd *exec.Cmd) io.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	_, err = out.Read(make([]byte, 8))
	require.NoError(t, err)
	return out
}

// process is a tcpdiag that runs, and what it logs.
type process struct {
	*exec.Cmd
	client *http.Client
	done   chan error
	mu     sync.Mutex
	log    bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

const processAddress = "127.0.0.1:10889"

// start runs an agent inside a namespace until the test ends.
func start(t *testing.T, ns *nettest.NS, change func(*exec.Cmd), args ...string) *process {
	t.Helper()
	p := &process{done: make(chan error, 1)}
	args = append([]string{"agent", "--web.listen-address", processAddress}, args...)
	p.Cmd = tcpdiag(ns, args...)
	p.Stderr, p.Stdout = p, p
	if change != nil {
		change(p.Cmd)
	}
	p.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(_ context.Context, network, address string) (c net.Conn, err error) {
			ns.Do(func() { c, err = net.Dial(network, address) })
			return c, err
		},
	}}
	require.NoError(t, p.Start())
	go func() { p.done <- p.Wait() }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		select {
		case err := <-p.done:
			t.Logf("the agent ended: %v", err)
		case <-time.After(time.Minute):
			t.Error("it does not end")
		}
		if t.Failed() {
			t.Log(p.logged())
		}
	})
	require.Eventually(t, func() bool {
		code, _ := p.try(http.MethodGet, "/-/ready")
		return code == http.StatusOK
	}, time.Minute, 20*time.Millisecond, "ready")
	return p
}

// try returns 0 when nobody answers.
func (p *process) try(method, path string) (code int, body string) {
	req, err := http.NewRequestWithContext(context.Background(), method, "http://"+processAddress+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

func (p *process) hangUp(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
}

// sum adds the series that match, "tcpdiag_target_up{.*port="80"}"; absent when
// there is none.
func (p *process) sum(t *testing.T, pattern string) (sum float64, present bool) {
	t.Helper()
	code, body := p.try(http.MethodGet, "/metrics")
	require.Equal(t, http.StatusOK, code, body)
	for _, m := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllStringSubmatch(body, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		sum, present = sum+v, true
	}
	return sum, present
}

// becomes waits until the series that match add up to want.
func (p *process) becomes(t *testing.T, pattern string, want float64) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, present := p.sum(t, pattern)
		return present && got == want
	}, time.Minute, 20*time.Millisecond, "%s = %v", pattern, want)
}

func (p *process) vanishes(t *testing.T, pattern string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, present := p.sum(t, pattern)
		return !present
	}, time.Minute, 20*time.Millisecond, "%s", pattern)
}

func (p *process) logs(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return bytes.Contains([]byte(p.logged()), []byte(text)) }, time.Minute, 10*time.Millisecond, "%q", text)
}
