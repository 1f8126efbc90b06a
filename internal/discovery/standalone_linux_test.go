package discovery

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// instance is a catalina.base apart from catalina.home, with
// testdata/standalone in it.
func instance(t *testing.T, home string) string {
	t.Helper()
	base := t.TempDir()
	for _, dir := range []string{"conf", "temp", "logs", "work", "webapps/ROOT"} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	for from, to := range map[string]string{
		"testdata/standalone/conf/catalina.properties": "conf/catalina.properties",
		"testdata/standalone/conf/limits.xml":          "conf/limits.xml",
		"testdata/standalone/limits.jsp":               "webapps/ROOT/limits.jsp",
		filepath.Join(home, "conf/web.xml"):            "conf/web.xml",
		rig.Keystore(t):                                "conf/keystore.p12",
	} {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(base, to), data, 0o644))
	}
	return base
}

// catalinaServer starts a Tomcat on eight ports, which are portOffset above those
// that server.xml has.
func catalinaServer(t *testing.T, java, home, base string, ports []int, options ...string) *server {
	t.Helper()
	const offset = 7
	args := []string{
		"-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx128m",
		"-classpath", filepath.Join(home, "bin/bootstrap.jar") + ":" + filepath.Join(home, "bin/tomcat-juli.jar"),
		"-Dcatalina.base=" + base, "-Dcatalina.home=" + home, "-Djava.io.tmpdir=" + filepath.Join(base, "temp"),
		fmt.Sprintf("-Doffset=%d", offset), "-Dlimits.beaten=55",
	}
	for i, port := range ports {
		args = append(args, fmt.Sprintf("-Dport.%c=%d", 'a'+i, port-offset))
	}
	args = append(append(args, options...), examine.BootstrapClass, "-config", "conf/limits.xml", "start")
	cmd := exec.CommandContext(t.Context(), java, args...)
	cmd.Env = append(os.Environ(), "LIMITS_MAX_THREADS=17", "JAVA_TOOL_OPTIONS=-Dlimits.acceptCount=33")
	cmd.Dir = base
	return serve(t, cmd)
}

// TestStandaloneServer compares every limit of every connector with what the
// server itself says.
func TestStandaloneServer(t *testing.T) { proveStandalone(t, "10.1.59") }

// TestLongStandaloneServers: for each other line of Tomcat.
func TestLongStandaloneServers(t *testing.T) { proveStandalone(t, "8.5.100", "9.0.117", "11.0.24") }

func proveStandalone(t *testing.T, versions ...string) {
	needServers(t)
	plain, virtual := javas(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			home := rig.KitOf(t).Distribution(version)
			base := instance(t, home)
			ports := nettest.FreePorts(t, 8)
			java, options := plain, []string{}
			threads := virtual != "" && strings.HasPrefix(version, "1") // virtual ones: from Tomcat 10.1 on
			if threads {
				java, options = virtual, []string{"-Dlimits.virtual=true"}
			}
			s := catalinaServer(t, java, home, base, ports, options...)
			truth := parseBeans(t, s.await(t, fmt.Sprintf("http://127.0.0.1:%d/limits.jsp", ports[0])))

			at := listening(t, ports...)
			require.Len(t, at, len(ports), "%s", tail{s.log})
			connectors, unavailable := inChildren(t).Discover(t.Context(), s.pid, s.start, at)
			for i, port := range ports {
				compareWithBeans(t, fmt.Sprintf("%c", 'A'+i), connectorOn(t, connectors, uint16(port)), truth, port)
			}
			checkStandalone(t, version, ports, connectors, truth, threads)
			require.Len(t, unavailable, 2, "the executors that are not found: %v", unavailable)
		})
	}
}

// compareWithBeans checks a connector's limits against the attributes of its
// thread pool.
func compareWithBeans(t *testing.T, name string, c *model.Connector, truth beans, port int) {
	t.Helper()
	require.NotNil(t, c, name)
	require.Equal(t, model.ServerTomcat().Name, c.Server, name)
	numbers := map[string]*model.Setting[int]{
		"maxConnections": c.MaxConnections, "acceptCount": c.AcceptCount, "maxKeepAliveRequests": c.MaxKeepAliveRequests,
	}
	if c.Executor == "" && (c.VirtualThreads == nil || !c.VirtualThreads.Value) {
		numbers["maxThreads"], numbers["minSpareThreads"] = c.MaxThreads, c.MinSpareThreads
	}
	for attribute, setting := range numbers {
		require.NotNil(t, setting, "%s %s", name, attribute)
		require.EqualValues(t, truth.pool(t, port, attribute), setting.Value, "%s %s: %+v", name, attribute, setting)
	}
	for attribute, setting := range map[string]*model.Setting[time.Duration]{
		"connectionTimeout": c.ConnectionTimeout, "keepAliveTimeout": c.KeepAliveTimeout,
	} {
		require.NotNil(t, setting, "%s %s", name, attribute)
		require.EqualValues(t, truth.pool(t, port, attribute), setting.Value.Milliseconds(), "%s %s: %+v", name, attribute, setting)
	}
	if c.PoolThreads != nil && c.Executor == "" {
		require.EqualValues(t, truth.pool(t, port, "currentThreadCount"), *c.PoolThreads, "%s threads", name)
	}
}

func checkStandalone(t *testing.T, version string, ports []int, connectors match.Connectors, truth beans, virtual bool) {
	t.Helper()
	at := func(letter rune) *model.Connector { return connectorOn(t, connectors, uint16(ports[letter-'A'])) }
	for i := range ports {
		require.Equal(t, version, at(rune('A'+i)).Version)
	}

	a := at('A')
	require.Equal(t, model.Setting[int]{
		Value: 321, Kind: model.SourceFile, Source: "conf/catalina.properties via conf/limits.xml line 9",
	}, *a.MaxConnections)
	require.Equal(t, model.Setting[int]{
		Value: 33, Kind: model.SourceProperty, Source: "-Dlimits.acceptCount in JAVA_TOOL_OPTIONS via conf/limits.xml line 10",
	}, *a.AcceptCount)
	require.Equal(t, model.Setting[int]{
		Value: 17, Kind: model.SourceEnv, Source: "env LIMITS_MAX_THREADS via conf/limits.xml line 11",
	}, *a.MaxThreads)
	require.Equal(t, model.Setting[int]{Value: 3, Kind: model.SourceFile, Source: "conf/limits.xml line 12"}, *a.MinSpareThreads)
	require.NotNil(t, a.PoolThreads)

	b := at('B')
	require.Equal(t, "shared", b.Executor)
	require.EqualValues(t, truth.find(t, "type=Executor,name=shared", "maxThreads"), b.MaxThreads.Value)
	require.EqualValues(t, truth.find(t, "type=Executor,name=shared", "minSpareThreads"), b.MinSpareThreads.Value)
	require.EqualValues(t, truth.find(t, "type=Executor,name=shared", "poolSize"), *b.PoolThreads)
	require.Equal(t, "conf/catalina.properties via conf/limits.xml line 17", b.AcceptCount.Source)

	c := at('C')
	require.Equal(t, model.SourceDefault, c.MaxConnections.Kind)
	require.Equal(t, "default of Tomcat "+version, c.MaxConnections.Source)

	d := at('D')
	require.Contains(t, d.MaxThreads.Note, "maxThreads (conf/limits.xml line")
	require.NotContains(t, d.MaxThreads.Note, "many", "values are not repeated")
	require.Contains(t, d.AcceptCount.Note, "acceptCount")
	require.Equal(t, "no limit", d.MaxConnections.Note)
	require.Equal(t, "http-nio2", d.Protocol)

	e := at('E')
	require.Equal(t, 4, e.MinSpareThreads.Value)
	require.Contains(t, e.MinSpareThreads.Note, "maxThreads")

	require.Equal(t, "ajp-nio", at('F').Protocol)

	h := at('H')
	require.Equal(t, "https-jsse-nio", h.Protocol)
	require.True(t, h.TLS)
	require.True(t, h.HTTP2)
	require.Equal(t, 6, *h.PoolThreads)

	g := at('G')
	require.Contains(t, g.AcceptCount.Note, "somaxconn")
	require.Equal(t, virtual, g.VirtualThreads.Value)
	require.Equal(t, virtual, g.MaxThreads == nil)
	require.Equal(t, virtual, g.PoolThreads == nil)
}

// TestLongRestartedServer: other limits are noticed at the next look.
func TestLongRestartedServer(t *testing.T) {
	needServers(t)
	plain, _ := javas(t)
	home := rig.KitOf(t).Distribution("10.1.59")
	base := instance(t, home)
	ports := nettest.FreePorts(t, 8)
	d := inChildren(t)
	for _, queue := range []string{"41", "42"} {
		s := catalinaServer(t, plain, home, base, ports, "-Dlimits.acceptCount="+queue)
		truth := parseBeans(t, s.await(t, fmt.Sprintf("http://127.0.0.1:%d/limits.jsp", ports[0])))
		connectors, _ := d.Discover(t.Context(), s.pid, s.start, listening(t, ports...))
		c := connectorOn(t, connectors, uint16(ports[0]))
		compareWithBeans(t, queue, c, truth, ports[0])
		require.Equal(t, queue, fmt.Sprint(c.AcceptCount.Value))
		require.Empty(t, c.AcceptCount.Note, "the kernel agrees")
		s.stop()
	}
}

// TestLongTwoAddressesOfOnePort: each connector keeps its own limits and threads.
func TestLongTwoAddressesOfOnePort(t *testing.T) {
	needServers(t)
	plain, _ := javas(t)
	home := rig.KitOf(t).Distribution("9.0.117")
	base := instance(t, home)
	port := nettest.FreePorts(t, 1)[0]
	write(t, filepath.Join(base, "conf/server.xml"), fmt.Sprintf(`<Server port="-1"><Service name="Catalina">
		<Connector port="%[1]d" address="127.0.0.1" maxConnections="10" acceptCount="5"/>
		<Connector port="%[1]d" address="127.0.0.2" maxConnections="8192"/>
	</Service></Server>`, port))
	cmd := exec.CommandContext(t.Context(), plain, "-XX:TieredStopAtLevel=1", "-Xmx128m",
		"-classpath", filepath.Join(home, "bin/bootstrap.jar")+":"+filepath.Join(home, "bin/tomcat-juli.jar"),
		"-Dcatalina.base="+base, "-Dcatalina.home="+home, examine.BootstrapClass, "start")
	s := serve(t, cmd)
	var at []match.Listening
	require.Eventually(t, func() bool {
		at = listening(t, port)
		return len(at) == 2
	}, time.Minute, 50*time.Millisecond, "%s", tail{s.log})
	connectors, unavailable := inChildren(t).Discover(t.Context(), s.pid, s.start, at)
	require.Empty(t, unavailable)
	require.Len(t, connectors, 2)
	for _, l := range at {
		want := map[string][2]int{"127.0.0.1": {10, 5}, "127.0.0.2": {8192, 100}}[l.Address.Unmap().String()]
		c := connectors[l.At()]
		require.Equal(t, want, [2]int{c.MaxConnections.Value, c.AcceptCount.Value}, l)
		require.Empty(t, c.AcceptCount.Note, "the kernel agrees")
	}
}
