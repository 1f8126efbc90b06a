package discovery

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// needServers skips unless real servers are wanted: they take Java, Maven and
// half a minute.
func needServers(t *testing.T) {
	t.Helper()
	proof.Servers(t)
}

// bootApp is testdata/bootapp built with a version of Spring Boot.
func bootApp(t *testing.T, version string) string {
	t.Helper()
	return rig.KitOf(t).Built("internal/discovery/testdata/bootapp", "bootapp-"+version, "bootapp-"+version+".jar", "-Dboot.version="+version)
}

// javas are the JVMs to run servers with: the one in PATH and, where there is
// one, a JVM with virtual threads.
func javas(t *testing.T) (plain, virtual string) {
	t.Helper()
	plain, err := exec.LookPath("java")
	require.NoError(t, err)
	candidates, err := filepath.Glob("/usr/lib/jvm/*/bin/java")
	require.NoError(t, err)
	for _, java := range append([]string{plain}, candidates...) {
		if major(t, java) >= 21 {
			return plain, java
		}
	}
	return plain, ""
}

func major(t *testing.T, java string) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), java, "-version").CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, rest, _ := strings.Cut(string(out), `version "`)
	n, err := strconv.Atoi(rest[:strings.IndexAny(rest, `."-`)])
	require.NoError(t, err, "%s", out)
	return n
}

// server is a running server.
type server struct {
	pid   int
	start uint64
	log   string
	stop  func()
}

// serve starts a server; it ends with the test.
func serve(t *testing.T, cmd *exec.Cmd) *server {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	s := &server{pid: cmd.Process.Pid, log: log.Name()}
	stopped := false
	s.stop = func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			_ = log.Close()
		}
	}
	t.Cleanup(s.stop)
	p, err := hostfs.Real(t).Process(s.pid)
	require.NoError(t, err)
	s.start = p.StartTime
	return s
}

// await waits until a server answers and returns what it says. It is asked in
// its own network namespace.
func (s *server) await(t *testing.T, address string) string {
	t.Helper()
	base, err := url.Parse(address)
	require.NoError(t, err)
	client := actuatorClient(&door{namespace: netns.Path("/proc", s.pid), url: base})
	client.Timeout = 30 * time.Second
	defer client.CloseIdleConnections()
	var body []byte
	require.Eventually(t, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		body, err = io.ReadAll(response.Body)
		return err == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "%s: %s", address, tail{s.log})
	return string(body)
}

// tail prints the end of a file when a test fails.
type tail struct{ path string }

func (l tail) String() string {
	data, _ := os.ReadFile(l.path)
	return string(data[max(0, len(data)-4000):])
}

// listening are those of the ports that something listens on, as the kernel
// has them.
func listening(t *testing.T, ports ...int) []match.Listening {
	t.Helper()
	conn, err := sockdiag.Dial()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	var out []match.Listening
	require.NoError(t, conn.Listeners(func(l *sockdiag.Listener) error {
		address := l.Address()
		for _, port := range ports {
			if int(address.Port()) == port {
				out = append(out, match.Listening{Port: address.Port(), Address: address.Addr(), SendQ: int(l.SendQ)})
			}
		}
		return nil
	}))
	return out
}

// beans are attributes of MBeans by "domain:key=value,… attribute".
type beans map[string]int64

func parseBeans(t *testing.T, text string) beans {
	t.Helper()
	out := beans{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		for ok && !strings.Contains(name, " ") {
			var more string
			more, value, ok = strings.Cut(value, "=")
			name += "=" + more
		}
		require.True(t, ok, line)
		switch value {
		case "true":
			out[name] = 1
		case "false":
			out[name] = 0
		default:
			n, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err, line)
			out[name] = int64(n)
		}
	}
	require.NotEmpty(t, out)
	return out
}

// pool is an attribute of the connector on a port.
func (b beans) pool(t *testing.T, port int, attribute string) int64 {
	t.Helper()
	return b.find(t, "type=ThreadPool,name=", fmt.Sprintf(`-%d" %s`, port, attribute))
}

func (b beans) find(t *testing.T, part, end string) int64 {
	t.Helper()
	for name, value := range b {
		if strings.Contains(name, part) && strings.HasSuffix(name, end) {
			return value
		}
	}
	require.Fail(t, "no such attribute", "%s … %s", part, end)
	return 0
}
