package discovery

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const bootYAML = `
server:
  tomcat:
    max-connections: 456
    accept-count: 9
    max-keep-alive-requests: 55
    threads.min-spare: 4
    max-threads: ${LIMITS_THREADS:21}
    threads.max: ${LIMITS_THREADS:21}
    mbeanregistry.enabled: true
management.endpoints.web.exposure.include: metrics
---
spring.config.activate.on-profile: prod
server.tomcat.connection-timeout: 11s
`

// bootServer starts the application of testdata/bootapp on two ports.
func bootServer(t *testing.T, java, jar string, ports []int, args ...string) *server {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "config"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config", "application.yml"), []byte(bootYAML), 0o644))
	cmd := exec.CommandContext(t.Context(), java, append([]string{
		"-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx128m", "-Dserver.port=" + strconv.Itoa(ports[0]),
		"-jar", jar, "--management.server.port=" + strconv.Itoa(ports[1]), "--spring.profiles.active=prod",
	}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SERVER_TOMCAT_ACCEPTCOUNT=66", "LIMITS_THREADS=19",
		`SPRING_APPLICATION_JSON={"server.tomcat.max-connections":789}`)
	return serve(t, cmd)
}

// bootVersion is a line of Spring Boot, with its threads.
type bootVersion struct {
	version string
	virtual bool
}

// TestBootServer compares the limits that are found with what the application
// says itself, by JMX and by Actuator.
func TestBootServer(t *testing.T) { proveBoots(t, bootVersion{"3.5.16", false}) }

// TestLongBootServers: for each other line of Spring Boot.
func TestLongBootServers(t *testing.T) {
	proveBoots(t, bootVersion{"2.7.18", false}, bootVersion{"3.5.16", true}, bootVersion{"4.0.9", false})
}

func proveBoots(t *testing.T, versions ...bootVersion) {
	needServers(t)
	plain, virtual := javas(t)
	for _, tt := range versions {
		t.Run(fmt.Sprintf("%s virtual %v", tt.version, tt.virtual), func(t *testing.T) {
			java := plain
			if tt.virtual {
				if virtual == "" {
					t.Skip("no Java 21 or newer in /usr/lib/jvm")
				}
				java = virtual
			}
			ports := nettest.FreePorts(t, 2)
			s := bootServer(t, java, bootApp(t, tt.version), ports, "--spring.threads.virtual.enabled="+strconv.FormatBool(tt.virtual))
			s.await(t, fmt.Sprintf("http://127.0.0.1:%d/actuator/metrics/tomcat.threads.busy", ports[1]))
			truth := parseBeans(t, s.await(t, fmt.Sprintf("http://127.0.0.1:%d/limits", ports[0])))

			connectors, unavailable := discover(t, s, listening(t, ports...))
			require.Empty(t, unavailable)
			for _, port := range ports {
				compareWithBeans(t, strconv.Itoa(port), connectorOn(t, connectors, uint16(port)), truth, port)
			}
			checkBoot(t, tt.version, connectorOn(t, connectors, uint16(ports[0])), tt.virtual)
			require.Nil(t, connectorOn(t, connectors, uint16(ports[1])).BusyThreads, "Actuator has no figures for its own port")
		})
	}
}

// discover finds a server's connectors. Its Actuator has a second to answer, which
// a machine that stands still can take away: then it is asked once more, by a
// Discoverer that knows nothing of it.
func discover(t *testing.T, s *server, at []match.Listening) (connectors match.Connectors, unavailable []model.Unavailable) {
	t.Helper()
	for range 5 {
		connectors, unavailable = inChildren(t).Discover(t.Context(), s.pid, s.start, at)
		if !slices.ContainsFunc(unavailable, func(u model.Unavailable) bool { return strings.Contains(u.Why, "deadline exceeded") }) {
			break
		}
	}
	return connectors, unavailable
}

func checkBoot(t *testing.T, version string, c *model.Connector, virtual bool) {
	t.Helper()
	require.Equal(t, "spring-boot", c.Framework)
	require.Equal(t, version, c.FrameworkVersion)
	require.NotEmpty(t, c.Version)
	require.Equal(t, "http-nio", c.Protocol)

	require.Equal(t, 789, c.MaxConnections.Value)
	require.Equal(t, model.SourceEnv, c.MaxConnections.Kind)
	require.Equal(t, 66, c.AcceptCount.Value)
	require.Contains(t, c.AcceptCount.Source, "SERVER_TOMCAT_ACCEPTCOUNT")
	require.Equal(t, 55, c.MaxKeepAliveRequests.Value)
	require.Equal(t, model.SourceFile, c.MaxKeepAliveRequests.Kind)
	require.Equal(t, 11*time.Second, c.ConnectionTimeout.Value)
	require.Contains(t, c.ConnectionTimeout.Source, "prod")
	require.NotNil(t, c.CurrentConnections, "Actuator was found on its own port")
	if virtual {
		require.True(t, c.VirtualThreads.Value)
		require.Nil(t, c.MaxThreads)
		require.Nil(t, c.PoolThreads)
		require.Nil(t, c.BusyThreads)
		return
	}
	require.Equal(t, 19, c.MaxThreads.Value)
	require.Equal(t, 4, c.MinSpareThreads.Value)
	require.Equal(t, 4, *c.PoolThreads)
	require.NotNil(t, c.BusyThreads)
}

// TestLongBootOnAnyPort: the port is chosen by the system and bound to one address,
// so the names of the threads show neither.
func TestLongBootOnAnyPort(t *testing.T) {
	needServers(t)
	plain, _ := javas(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), plain, "-XX:TieredStopAtLevel=1", "-Xmx128m", "-jar", bootApp(t, "3.5.16"),
		"--server.port=0", "--server.address=127.0.0.1", "--server.tomcat.accept-count=0", "--server.tomcat.max-connections=-1",
		"--server.tomcat.threads.min-spare=3", "--server.tomcat.mbeanregistry.enabled=true")
	cmd.Dir = dir
	s := serve(t, cmd)
	var port int
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(s.log)
		require.NoError(t, err)
		found := regexp.MustCompile(`started on port (\d+)`).FindSubmatch(log)
		if found == nil {
			return false
		}
		port = atoi(t, string(found[1]))
		return true
	}, time.Minute, 50*time.Millisecond, "%s", tail{s.log})
	truth := parseBeans(t, s.await(t, fmt.Sprintf("http://127.0.0.1:%d/limits", port)))
	connectors, unavailable := discover(t, s, listening(t, port))
	require.Empty(t, unavailable)
	c := connectorOn(t, connectors, uint16(port))
	compareWithBeans(t, "any", c, truth, 1) // named before it has a port: http-nio-127.0.0.1-auto-1
	require.Equal(t, 3, *c.PoolThreads)
	require.Contains(t, c.AcceptCount.Note, "ignored")
	require.Contains(t, c.MaxConnections.Note, "ignored")
}

// TestLongBootInAContainer: an application in network, mount and pid namespaces of
// its own, with its files where only it sees them.
func TestLongBootInAContainer(t *testing.T) {
	needServers(t)
	nettest.Root(t)
	plain, _ := javas(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", `
		ip link set lo up
		mount --make-rprivate /
		mount -t tmpfs tmpfs "$DIR"
		mkdir "$DIR/config"
		printf "server.tomcat.threads.max: 21\nserver.tomcat.mbeanregistry.enabled: true\n" > "$DIR/config/application.yml"
		printf "management.server.port: 8081\nmanagement.endpoints.web.exposure.include: metrics\n" >> "$DIR/config/application.yml"
		cp "$JAR" "$DIR/app.jar"
		cd "$DIR"
		exec "$JAVA" -XX:TieredStopAtLevel=1 -Xmx128m -jar app.jar`)
	cmd.Env = append(os.Environ(), "JAVA="+plain, "JAR="+bootApp(t, "3.5.16"), "DIR="+dir,
		"SERVER_TOMCAT_ACCEPT_COUNT=44", "JAVA_TOOL_OPTIONS=-Dserver.tomcat.max-connections=333")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET}
	s := serve(t, cmd)
	s.await(t, "http://127.0.0.1:8081/actuator/metrics/tomcat.threads.busy")
	truth := parseBeans(t, s.await(t, "http://127.0.0.1:8080/limits"))
	require.NoFileExists(t, filepath.Join(dir, "app.jar"))

	var at []match.Listening
	require.NoError(t, netns.Do(netns.Path("/proc", s.pid), func() error {
		at = listening(t, 8080, 8081)
		return nil
	}))
	connectors, unavailable := discover(t, s, at)
	require.Empty(t, unavailable)
	c := connectorOn(t, connectors, 8080)
	compareWithBeans(t, "contained", c, truth, 8080)
	require.Equal(t, 333, c.MaxConnections.Value)
	require.Equal(t, model.SourceProperty, c.MaxConnections.Kind)
	require.Equal(t, 44, c.AcceptCount.Value)
	require.Empty(t, c.AcceptCount.Note, "the kernel agrees")
	require.Equal(t, "config/application.yml", c.MaxThreads.Source)
	require.NotNil(t, c.BusyThreads, "Actuator answers in its network")
}
