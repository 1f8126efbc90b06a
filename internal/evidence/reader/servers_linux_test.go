package reader

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
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// needServers skips unless real servers are wanted: they take Java, Maven and
// minutes.
func needServers(t *testing.T) {
	t.Helper()
	proof.Servers(t)
}

// The connectors of the server under test. Each holds maxConnections clients;
// nobody has to send anything to hold a place.
const (
	plain   = iota // HTTP/1.1, a port of four digits: thread names are whole
	cut            // HTTP/1.1, a port of five digits: they are not
	tlsConn        // HTTPS: not even the port is left
	h2             // HTTP/2 in addition to HTTP/1.1
	nio2
	control // for control.jsp
	connectors

	maxConnections = 3
	acceptCount    = 2
)

const serverXML = `<Server port="-1"><Service name="Catalina">
<Connector port="%[1]d" protocol="org.apache.coyote.http11.Http11NioProtocol" %[7]s/>
<Connector port="%[2]d" protocol="org.apache.coyote.http11.Http11NioProtocol" %[7]s/>
<Connector port="%[3]d" protocol="org.apache.coyote.http11.Http11NioProtocol" %[7]s SSLEnabled="true" scheme="https" secure="true">
<SSLHostConfig><Certificate certificateKeystoreFile="conf/keystore.p12" certificateKeystorePassword="changeit"/></SSLHostConfig></Connector>
<Connector port="%[4]d" protocol="org.apache.coyote.http11.Http11NioProtocol" %[7]s>
<UpgradeProtocol className="org.apache.coyote.http2.Http2Protocol"/></Connector>
<Connector port="%[5]d" protocol="org.apache.coyote.http11.Http11Nio2Protocol" %[7]s/>
<Connector port="%[6]d" protocol="org.apache.coyote.http11.Http11NioProtocol"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine></Service></Server>`

// control.jsp pauses and resumes a connector; and it collects garbage, from a
// heap of small objects that come and go, until it is asked to end. (The JSP
// compiler of Tomcat 8.5 can read neither System nor Thread of Java 17.)
const controlJSP = `<%@ page import="java.lang.management.*,javax.management.*" %><%
String op = request.getParameter("op");
if (op == null) {
} else if (op.equals("pause") || op.equals("resume")) {
	MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
	for (ObjectName name : beans.queryNames(new ObjectName("Catalina:type=Connector,port=" + request.getParameter("port") + ",*"), null))
		beans.invoke(name, op, null, null);
} else if (op.equals("collect")) {
	application.setAttribute("collect", op);
	java.util.List<byte[]> kept = new java.util.ArrayList<byte[]>();
	for (int i = 0; i < 50000; i++) kept.add(new byte[64]);
	while (application.getAttribute("collect") != null) {
		for (int i = 0; i < 5000; i++) kept.set(i, new byte[64]);
		Runtime.getRuntime().gc();
		java.util.concurrent.TimeUnit.MILLISECONDS.sleep(15);
	}
} else {
	application.removeAttribute("collect");
}
%>done`

// server is a running Tomcat.
type server struct {
	pid   int
	ports [connectors]int
	log   string
	inode map[int]uint32
}

// start runs a Tomcat with a JVM; it ends with the test.
func start(t *testing.T, java, version string, credential *syscall.Credential, options ...string) *server {
	t.Helper()
	home, base := rig.KitOf(t).Distribution(version), t.TempDir()
	s := &server{ports: freePorts(t), log: filepath.Join(base, "log")}
	limits := fmt.Sprintf(`maxConnections="%d" acceptCount="%d" connectionTimeout="600000" minSpareThreads="2"`, maxConnections, acceptCount)
	p := s.ports
	write(t, base, "conf/server.xml", fmt.Sprintf(serverXML, p[plain], p[cut], p[tlsConn], p[h2], p[nio2], p[control], limits))
	write(t, base, "webapps/ROOT/control.jsp", controlJSP)
	for from, to := range map[string]string{filepath.Join(home, "conf/web.xml"): "conf/web.xml", rig.Keystore(t): "conf/keystore.p12"} {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		write(t, base, to, string(data))
	}
	for _, dir := range []string{"temp", "logs", "work"} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, dir), 0o777))
	}
	args := append([]string{
		"-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx128m",
		"-classpath", filepath.Join(home, "bin/bootstrap.jar") + ":" + filepath.Join(home, "bin/tomcat-juli.jar"),
		"-Dcatalina.base=" + base, "-Dcatalina.home=" + home, "-Djava.io.tmpdir=" + filepath.Join(base, "temp"),
	}, options...)
	cmd := exec.CommandContext(t.Context(), java, append(args, "org.apache.catalina.startup.Bootstrap", "start")...)
	cmd.Dir = base
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	log, err := os.Create(s.log)
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	s.pid = cmd.Process.Pid
	s.ask(t, "")
	s.inode = listeningInodes(t, p[:])
	require.Len(t, s.inode, connectors)
	return s
}

func write(t *testing.T, base, name, text string) {
	t.Helper()
	name = filepath.Join(base, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// freePorts are ports that nothing listens on, the first of four digits.
func freePorts(t *testing.T) (ports [connectors]int) {
	t.Helper()
	for i := range ports {
		from, to := 18000+10*os.Getpid()%1000, 19999
		if i == plain {
			from, to = 8100, 9999
		}
		l := listenFrom(t, from, to)
		defer func() { _ = l.Close() }()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

func listenFrom(t *testing.T, from, to int) net.Listener {
	t.Helper()
	for port := from; port <= to; port++ {
		if l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":"+strconv.Itoa(port)); err == nil {
			return l
		}
	}
	require.FailNow(t, "no free port")
	return nil
}

// ask runs control.jsp, when the server is up.
func (s *server) ask(t *testing.T, query string) {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	url := fmt.Sprintf("http://127.0.0.1:%d/control.jsp?%s", s.ports[control], query)
	ctx := context.WithoutCancel(t.Context()) // it is asked in clean-ups, too
	require.Eventually(t, func() bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		return err == nil && response.StatusCode == http.StatusOK && strings.Contains(string(body), "done")
	}, 2*time.Minute, 50*time.Millisecond, "%s: %s", url, tail{s.log})
}

// tail prints the end of a file when a test fails.
type tail struct{ path string }

func (l tail) String() string {
	data, _ := os.ReadFile(l.path)
	return string(data[max(0, len(data)-4000):])
}

func listeningInodes(t *testing.T, ports []int) map[int]uint32 {
	t.Helper()
	out := map[int]uint32{}
	eachListener(t, func(l *sockdiag.Listener) {
		for _, port := range ports {
			if int(l.Address().Port()) == port {
				out[port] = l.Inode
			}
		}
	})
	return out
}

// queued is the length of a connector's accept queue.
func (s *server) queued(t *testing.T, connector int) (n int) {
	t.Helper()
	eachListener(t, func(l *sockdiag.Listener) {
		if l.Inode == s.inode[s.ports[connector]] {
			n = int(l.RecvQ)
		}
	})
	return n
}

func eachListener(t *testing.T, fn func(*sockdiag.Listener)) {
	t.Helper()
	conn, err := sockdiag.Dial()
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.Listeners(func(l *sockdiag.Listener) error { fn(l); return nil }))
}

// connect opens connections to a connector, at most as many as its queue lets in,
// and says nothing on them.
func (s *server) connect(t *testing.T, connector, n int) (leave func()) {
	t.Helper()
	var open []net.Conn
	for range n {
		c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(s.ports[connector]))
		require.NoError(t, err)
		open = append(open, c)
	}
	leave = func() {
		for _, c := range open {
			_ = c.Close()
		}
	}
	t.Cleanup(leave)
	return leave
}

// open opens a connector's reader.
func (s *server) open(t *testing.T, connector int) *Reader {
	t.Helper()
	port := s.ports[connector]
	r := Open(hostfs.Real(t), jvmOf(t, s.pid), Listener{PID: s.pid, Port: uint16(port), Inode: s.inode[port]}, time.Now)
	t.Cleanup(r.Close)
	return r
}
