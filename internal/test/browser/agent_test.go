package browser

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what comes at once on a machine that is
// free.
const patience = 90 * time.Second

// program is tcpdiag as it is built here.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tcpdiag-browser-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "tcpdiag")
	build := exec.Command("go", "build", "-o", program, "./cmd/tcpdiag")
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n", out)
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// agent is one that watches the listeners of this test's process.
type agent struct {
	address string
	dir     string
	cmd     *exec.Cmd
}

func (a *agent) url() string { return "http://" + a.address + "/" }

func startAgent(t *testing.T) *agent {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	a := &agent{address: l.Addr().String(), dir: filepath.Join(t.TempDir(), "incidents")}
	require.NoError(t, l.Close())
	a.start(t)
	t.Cleanup(a.stop)
	return a
}

func (a *agent) start(t *testing.T) {
	t.Helper()
	a.cmd = exec.Command(program, "agent", "--web.listen-address", a.address, "--pid", strconv.Itoa(os.Getpid()), "--incident-dir", a.dir, "--web.enable-pprof")
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, a.cmd.Start())
	a.until(t, "-/ready", func(string) bool { return true })
}

func (a *agent) stop() {
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// get is the body of a page, false where there is none.
func (a *agent) get(path string) (string, bool) {
	resp, err := http.Get(a.url() + path)
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err == nil && resp.StatusCode == http.StatusOK
}

func (a *agent) until(t *testing.T, path string, holds func(body string) bool) (body string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var ok bool
		body, ok = a.get(path)
		return ok && holds(body)
	}, patience, 50*time.Millisecond, path)
	return body
}

// server is a listener of this process. It accepts nothing by itself.
type server struct {
	net.Listener
	backlog int
}

// listen makes a listener with a backlog: Go's own is as large as it may be.
func listen(t *testing.T, backlog int) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	raw, err := l.(*net.TCPListener).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), backlog) }))
	require.NoError(t, err)
	return &server{l, backlog}
}

// fill queues n clients that stay.
func (s *server) fill(t *testing.T, n int) {
	t.Helper()
	for range n {
		c, err := net.DialTimeout("tcp", s.Addr().String(), patience)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
	}
}

// overload sends clients for which there is no room until the test ends.
func (s *server) overload(t *testing.T) {
	t.Helper()
	s.fill(t, s.backlog+1)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			d := net.Dialer{Timeout: 200 * time.Millisecond}
			if c, err := d.DialContext(ctx, "tcp", s.Addr().String()); err == nil {
				_ = c.Close()
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
}
