package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// A pod is a real server that lives in namespaces of its own. It has five
// connections, which are all that it may have, and a full accept queue of four.
type pod struct {
	t     *testing.T
	net   string // path of its network namespace
	pid   int    // as the tests see it
	inner int    // as it sees itself
	port  int

	sources map[string]string // where each limit stands, by name
	cause   string            // of the full queue
	served  int               // of the five connections; the others wait, or are idle
	idle    int
	drops   int // ListenDrops of its namespace before anybody looked
	files   *openFiles
}

const (
	podThreads     = 2
	podConnections = 5
	podBacklog     = 3
)

func (p *pod) address() netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(p.port))
}

// do runs fn in the pod's network namespace.
func (p *pod) do(fn func()) {
	p.t.Helper()
	require.NoError(p.t, netns.Do(p.net, func() error {
		fn()
		return nil
	}))
}

// springPod is the sample server in a network, a mount and a pid namespace.
// Its application.yml exists there only: outside another one lies under the
// same path.
func springPod(t *testing.T) *pod {
	t.Helper()
	a := artifacts(t)
	namedApp(t)
	ns := nettest.Namespace(t)
	dir := appDir(t)
	write(t, filepath.Join(dir, "application.yml"), yml(777, 99, 55))
	inside := write(t, filepath.Join(filepath.Dir(dir), filepath.Base(dir)+"-inside.yml"), yml(podConnections, podThreads, podBacklog))
	t.Cleanup(func() { _ = os.Remove(inside) })
	script := fmt.Sprintf(`
		mount -t proc proc /proc && mount -t tmpfs tmpfs %[1]s &&
		cp %[2]s %[1]s/application.yml && cd %[1]s && exec "$@"`, dir, inside)
	server := tomcat(t, fourDigits(), rig.Limits{}, func(o *rig.TomcatOptions) {
		o.Artifacts = a
		o.HTTP = &http.Client{Transport: &http.Transport{DialContext: dialIn(ns.Path())}}
		o.Wrap = append([]string{"nsenter", "--net=" + ns.Path(), "--", "unshare", "--mount", "--", "sh", "-ec", script, "sh"}, asApp()...)
		// Without Pdeathsig, for in a new pid namespace the parent cannot be
		// seen: setpriv asks for it.
		o.Attr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	})
	p := &pod{
		t: t, net: ns.Path(), pid: server.PID, inner: 1, port: server.Port, cause: "max_connections", served: podThreads,
		sources: map[string]string{"max_connections": "application.yml", "max_threads": "application.yml", "accept_count": "application.yml"},
	}
	p.do(func() { request(t, p.address(), podConnections) })
	nettest.Within(t, time.Minute, "the server is full", func() bool {
		return truth(t, server) == rig.Truth{Busy: podThreads, Connections: podConnections}
	})
	p.do(func() { nettest.Queue(t, p.address(), podBacklog+1) })
	return p
}

func yml(connections, threads, backlog int) string {
	return fmt.Sprintf("server.tomcat: {max-connections: %d, accept-count: %d, threads.max: %d}\n", connections, backlog, threads)
}

// dialIn connects within a network namespace.
func dialIn(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		inside := netns.Do(path, func() error {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return conn, inside
	}
}

// tomcatPod is a standalone Tomcat in a network namespace that has a name (ip
// netns) and a mount namespace (ip netns exec makes one). Its server.xml exists
// there only. Its five connections are idle.
func tomcatPod(t *testing.T) *pod {
	t.Helper()
	artifacts(t)
	namedApp(t)
	name := "tcpdiag-e2e-" + strconv.Itoa(os.Getpid())
	ip(t, "netns", "add", name)
	t.Cleanup(func() { ip(t, "netns", "del", name) })
	ip(t, "-n", name, "link", "set", "lo", "up")
	dir := appDir(t)
	port := fourDigits()
	write(t, filepath.Join(dir, "conf/server.xml"), serverXML(port, 777, 99, 55))
	inside := write(t, filepath.Join(filepath.Dir(dir), filepath.Base(dir)+"-inside.xml"), serverXML(port, podConnections, podThreads, podBacklog))
	t.Cleanup(func() { _ = os.Remove(inside) })
	script := fmt.Sprintf(`
		mount -t tmpfs -o uid=%[4]s tmpfs %[1]s && cd %[1]s && mkdir conf home logs temp webapps work &&
		mount --bind %[3]s home && cp %[2]s conf/server.xml && chown -R %[4]s:%[4]s logs temp work && exec "$@"`,
		dir, inside, distribution(t, "10.1.59"), appID)
	line := append([]string{"netns", "exec", name, "sh", "-ec", script, "sh"}, asApp()...)
	line = append(line, "java", "-Xmx96m", "-XX:TieredStopAtLevel=1", "-classpath", "home/bin/bootstrap.jar:home/bin/tomcat-juli.jar",
		"-Dcatalina.home="+dir+"/home", "-Dcatalina.base="+dir, "-Djava.io.tmpdir="+dir+"/temp",
		"org.apache.catalina.startup.Bootstrap", "start")
	cmd := exec.CommandContext(t.Context(), "ip", line...)
	cmd.SysProcAttr = rig.DiesWithParent()
	proctest.Run(t, cmd)
	p := &pod{
		t: t, net: "/run/netns/" + name, pid: cmd.Process.Pid, inner: cmd.Process.Pid, port: port, cause: "keep_alive_idle", idle: podConnections,
		sources: map[string]string{"max_connections": "conf/server.xml line 3", "max_threads": "conf/server.xml line 3", "accept_count": "conf/server.xml line 3"},
	}
	nettest.Within(t, time.Minute, "Tomcat listens", func() bool { return p.queued() == 0 })
	p.do(func() { nettest.Queue(t, p.address(), podConnections) })
	nettest.Within(t, time.Minute, "five are accepted", func() bool { return p.queued() == 0 })
	p.do(func() { nettest.Queue(t, p.address(), podBacklog+1) })
	return p
}

func serverXML(port, connections, threads, backlog int) string {
	return fmt.Sprintf(`<Server port="-1">
  <Service name="Catalina">
    <Connector port="%d" maxConnections="%d" maxThreads="%d" acceptCount="%d" connectionTimeout="600000"/>
    <Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine>
  </Service>
</Server>
`, port, connections, threads, backlog)
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %v: %s", args, out)
}

// queued is the length of the accept queue, -1 without a listener.
func (p *pod) queued() int { return queued(p.t, strconv.Itoa(p.pid), p.port) }
