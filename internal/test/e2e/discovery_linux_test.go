package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// found is what snapshot says of a server's listener without being given
// anything but the port.
func found(t *testing.T, port int) *rig.Listener {
	t.Helper()
	return listener(t, snapshot(t, nil, "--port", strconv.Itoa(port), "--interval", "100ms"), port)
}

func env(values ...string) func(*rig.TomcatOptions) {
	return func(o *rig.TomcatOptions) { o.Env = append(o.Env, values...) }
}

func code(v rig.Verdict, want string) (evidence string, ok bool) {
	for _, f := range v.Findings {
		if f.Code == want {
			return f.Evidence, true
		}
	}
	return "", false
}

// F2: acceptCount 5000 and somaxconn 128: the kernel cut the backlog when the
// server called listen(), and raising somaxconn afterwards changes nothing.
func TestF2BacklogClamped(t *testing.T) {
	artifacts(t)
	const sysctl = "/proc/sys/net/core/somaxconn" // of this test's own namespace
	before, err := os.ReadFile(sysctl)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(sysctl, []byte("128"), 0o644))
	restore := func() { _ = os.WriteFile(sysctl, before, 0o644) }
	t.Cleanup(restore)
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 4, MaxConnections: 10, AcceptCount: 5000})
	restore()
	l := found(t, server.Port)
	require.Equal(t, 128, l.AcceptQueue.Limit)
	require.Equal(t, 5000, l.Connector.AcceptCount.Value, "as configured")
	require.Equal(t, new(10+128+1), l.Capacity)
	require.Equal(t, "backlog_clamped", l.Verdict.Cause)
	require.Equal(t, "ok", l.Verdict.Status, "nobody is harmed yet")
	evidence, ok := code(l.Verdict, "backlog_clamped")
	require.True(t, ok)
	require.Contains(t, evidence, "128")
	require.Contains(t, evidence, "5,000")
}

// F3: Spring Boot ignores accept-count 0 and max-connections -1.
func TestLongF3IgnoredBySpring(t *testing.T) {
	server := tomcat(t, fourDigits(), rig.Limits{}, env("TOMCAT_ACCEPT_COUNT=0", "TOMCAT_MAX_CONNECTIONS=-1"))
	l := found(t, server.Port)
	require.Equal(t, 100, l.Connector.AcceptCount.Value)
	require.Equal(t, 100, l.AcceptQueue.Limit, "the kernel says the same")
	require.Equal(t, 8192, l.Connector.MaxConnections.Value)
	for name, s := range map[string]*rig.Setting{"accept-count": l.Connector.AcceptCount, "max-connections": l.Connector.MaxConnections} {
		require.Contains(t, s.Note, "ignore", name)
	}
	require.Equal(t, new(8293), l.Capacity)
}

// F8: a standalone Tomcat whose connector uses a shared Executor: the limits
// are the Executor's.
func TestLongF8SharedExecutor(t *testing.T) {
	artifacts(t)
	port := fourDigits()
	base := t.TempDir()
	for _, dir := range []string{"conf", "logs", "temp", "webapps", "work"} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(base, "conf/server.xml"), []byte(fmt.Sprintf(`<Server port="-1">
  <Service name="Catalina">
    <Executor name="shared" namePrefix="shared-" maxThreads="7" minSpareThreads="2"/>
    <Connector port="%d" executor="shared" maxThreads="99" maxConnections="50" acceptCount="9"/>
    <Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine>
  </Service>
</Server>
`, port)), 0o644))
	home := distribution(t, "10.1.59")
	cmd := exec.CommandContext(t.Context(), "java", "-Xmx96m", "-XX:TieredStopAtLevel=1",
		"-classpath", filepath.Join(home, "bin/bootstrap.jar")+":"+filepath.Join(home, "bin/tomcat-juli.jar"),
		"-Dcatalina.home="+home, "-Dcatalina.base="+base, "-Djava.io.tmpdir="+filepath.Join(base, "temp"),
		"org.apache.catalina.startup.Bootstrap", "start")
	cmd.Dir = base
	cmd.SysProcAttr = rig.DiesWithParent()
	proctest.Run(t, cmd)
	nettest.Within(t, time.Minute, "Tomcat listens", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	l := found(t, port)
	require.Equal(t, "tomcat", l.Connector.Server)
	require.Empty(t, l.Connector.Framework)
	require.Equal(t, 7, l.Connector.MaxThreads.Value, "not the Connector's 99")
	require.Contains(t, l.Connector.MaxThreads.Source, "conf/server.xml line 3")
	require.Equal(t, 50, l.Connector.MaxConnections.Value)
	require.Equal(t, 9, l.Connector.AcceptCount.Value)
	require.Equal(t, "shared", l.Connector.Executor)
}

// distribution is an unpacked Tomcat, fetched by Maven once.
func distribution(t *testing.T, version string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	home := filepath.Join(cache, "tcpdiag", "apache-tomcat-"+version)
	if _, err := os.Stat(home); err == nil {
		return readable(t, home)
	}
	user, err := os.UserHomeDir()
	require.NoError(t, err)
	archive := filepath.Join(user, ".m2/repository/org/apache/tomcat/tomcat", version, "tomcat-"+version+".tar.gz")
	_, err = os.Stat(archive)
	require.NoError(t, err, "run the tests of internal/discovery first (make test does): they fetch it")
	require.NoError(t, os.MkdirAll(filepath.Dir(home), 0o755))
	out, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive, "-C", filepath.Dir(home)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return readable(t, home)
}

// readable lets every user read a distribution: its archive has files of mode 0640.
func readable(t *testing.T, home string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "chmod", "-R", "a+rX", home).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return home
}

// F9: whatever address the connector is bound to, it is found under it, and
// its connections are its own.
func TestLongF9Addresses(t *testing.T) {
	for _, tt := range []struct{ bind, address, dial string }{
		{"", "[::]", "127.0.0.1"},
		{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, // an AF_INET6 socket, v4-mapped
		{"::1", "[::1]", "[::1]"},
	} {
		t.Run(tt.address, func(t *testing.T) {
			server := tomcat(t, fourDigits(), rig.Limits{Threads: 4, MaxConnections: 10, AcceptCount: 5},
				env("SERVER_ADDRESS="+tt.bind, "MANAGEMENT_SERVER_ADDRESS=127.0.0.1"))
			clients(t, demo.BurstOptions{
				Address: tt.dial + ":" + strconv.Itoa(server.Port), Clients: 3, Path: hello(20 * time.Second),
				ConnectTimeout: 5 * time.Second, RequestTimeout: 30 * time.Second,
			})
			// Actuator's names of such a connector contain the address: ask tcpdiag.
			nettest.Within(t, time.Minute, "three are served", func() bool {
				return found(t, server.Port).Connections.InService == 3
			})
			l := found(t, server.Port)
			require.Equal(t, tt.address+":"+strconv.Itoa(server.Port), l.Address)
			require.Equal(t, server.PID, l.Process.PID)
			require.Equal(t, 3, l.Connections.Accepted)
			require.Equal(t, 10, l.Connector.MaxConnections.Value)
		})
	}
}

// F9: a process in another network namespace.
func TestLongF9OtherNamespace(t *testing.T) {
	a := artifacts(t)
	elsewhere := nettest.Namespace(t) // first: its thread ends, and with it what the thread has started
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 4, MaxConnections: 10, AcceptCount: 5})
	out, err := elsewhere.Command(a.Tcpdiag, "snapshot", "--pid", strconv.Itoa(server.PID), "--interval", "100ms", "--output", "json").Output()
	require.NoError(t, err)
	d, err := rig.Decode(out)
	require.NoError(t, err)
	l := listener(t, d, server.Port)
	require.Equal(t, "[::]:"+strconv.Itoa(server.Port), l.Address)
	require.Equal(t, 10, l.Connector.MaxConnections.Value)
	require.Equal(t, l.NetNS, d.NetNS[0].ID)
	here := found(t, server.Port)
	require.Equal(t, here.NetNS, l.NetNS)
	require.Equal(t, here.Inode, l.Inode)
}

// D1: virtual threads: maxThreads does not apply, and a moderate load is fine.
func TestLongD1VirtualThreads(t *testing.T) {
	artifacts(t)
	jdk := newerJDK(t)
	t.Setenv("PATH", jdk+":"+os.Getenv("PATH"))
	server := tomcat(t, fourDigits(), rig.Limits{Threads: 4}, env("SPRING_THREADS_VIRTUAL_ENABLED=true"))
	clients(t, demo.BurstOptions{
		Address: server.Address(), Clients: 40, Rate: 100, Path: hello(20 * time.Second),
		ConnectTimeout: 5 * time.Second, RequestTimeout: 30 * time.Second,
	})
	nettest.Within(t, time.Minute, "forty are in service", func() bool {
		return found(t, server.Port).Connections.InService == 40
	})
	l := found(t, server.Port)
	require.NotNil(t, l.Connector.VirtualThreads)
	require.True(t, l.Connector.VirtualThreads.Value)
	require.Equal(t, "ok", l.Verdict.Status, l.Verdict.Summary)
	for _, limit := range l.Limits {
		require.NotEqual(t, "max_threads", limit.Name, "ten times as many as maxThreads are in service")
	}
}

// newerJDK is the folder of a java of 21 or newer.
func newerJDK(t *testing.T) string {
	t.Helper()
	candidates, err := filepath.Glob("/usr/lib/jvm/*/bin/java")
	require.NoError(t, err)
	for _, java := range candidates {
		out, err := exec.CommandContext(t.Context(), java, "-version").CombinedOutput()
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(out), `version "`)
		major, _ := strconv.Atoi(rest[:max(0, strings.IndexAny(rest, `.-"`))])
		if major >= 21 {
			return filepath.Dir(java)
		}
	}
	t.Skip("virtual threads need Java 21 or newer: none under /usr/lib/jvm")
	return ""
}
