package discovery

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// needServers skips unless real servers are wanted: they take Java, Maven and
// half a minute.
func needServers(t *testing.T) {
	t.Helper()
	proof.Servers(t)
}

// cacheDir is where unpacked servers and built applications stay.
func cacheDir(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	require.NoError(t, err)
	dir = filepath.Join(dir, "tcpdiag")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}

// cached makes something once; it appears whole or not at all.
func cached(t *testing.T, name string, create func(path string)) string {
	t.Helper()
	final := filepath.Join(cacheDir(t), name)
	if _, err := os.Stat(final); err == nil {
		return final
	}
	work, err := os.MkdirTemp(cacheDir(t), "new-")
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(work) }()
	path := filepath.Join(work, name)
	create(path)
	if err := os.Rename(path, final); err != nil && !errors.Is(err, fs.ErrExist) {
		_, statErr := os.Stat(final) // another test was faster
		require.NoError(t, statErr, err)
	}
	return final
}

// mvn runs Maven.
func mvn(t *testing.T, dir string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mvn", append([]string{"-q", "-B"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "mvn %v: %s", args, out)
}

// distribution is an unpacked Tomcat.
func distribution(t *testing.T, version string) string {
	t.Helper()
	return cached(t, "apache-tomcat-"+version, func(path string) {
		home, err := os.UserHomeDir()
		require.NoError(t, err)
		archive := filepath.Join(home, ".m2", "repository", "org", "apache", "tomcat", "tomcat", version, "tomcat-"+version+".tar.gz")
		if _, err := os.Stat(archive); err != nil {
			mvn(t, t.TempDir(), "dependency:get", "-Dmaven.repo.local="+filepath.Join(home, ".m2", "repository"), "-Dartifact=org.apache.tomcat:tomcat:"+version+":tar.gz", "-Dtransitive=false")
		}
		unpack(t, archive, filepath.Dir(path))
	})
}

// unpack extracts what a server needs: bin, conf and lib.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	packed, err := gzip.NewReader(f)
	require.NoError(t, err)
	for in := tar.NewReader(packed); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		if header.Typeflag != tar.TypeReg || strings.Contains(header.Name, "/webapps/") {
			continue
		}
		path := filepath.Join(dir, filepath.Clean("/"+header.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		data, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o644))
	}
}

// bootApp is testdata/bootapp built with a version of Spring Boot.
func bootApp(t *testing.T, version string) string {
	t.Helper()
	sum := sha256.New()
	source, err := filepath.Abs("testdata/bootapp")
	require.NoError(t, err)
	for _, file := range []string{"pom.xml", "src/main/java/app/Main.java"} {
		data, err := os.ReadFile(filepath.Join(source, file))
		require.NoError(t, err)
		sum.Write(data)
	}
	name := fmt.Sprintf("bootapp-%s-%s.jar", version, hex.EncodeToString(sum.Sum(nil))[:12])
	return cached(t, name, func(path string) {
		target := filepath.Join(filepath.Dir(path), "target")
		mvn(t, source, "package", "-Dboot.version="+version, "-Dbuild.folder="+target)
		require.NoError(t, os.Rename(filepath.Join(target, "bootapp-"+version+".jar"), path))
	})
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
	p, err := procFS(t).Process(s.pid)
	require.NoError(t, err)
	s.start = p.StartTime
	return s
}

func procFS(t testing.TB) hostproc.FS {
	t.Helper()
	proc, err := hostproc.NewFS("/proc")
	require.NoError(t, err)
	return proc
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
func listening(t *testing.T, ports ...int) []Listening {
	t.Helper()
	conn, err := sockdiag.Dial()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	var out []Listening
	require.NoError(t, conn.Listeners(func(l *sockdiag.Listener) error {
		address := l.Address()
		for _, port := range ports {
			if int(address.Port()) == port {
				out = append(out, Listening{Port: address.Port(), Address: address.Addr(), SendQ: int(l.SendQ)})
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
