package discovery

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const virtualDoubt = "uncertain: it has no effect if requests run on virtual threads, which is not known"

// jdk is a folder like a JDK's whose java is this test program.
func jdk(t *testing.T, version string) (java string) {
	t.Helper()
	home := t.TempDir()
	write(t, filepath.Join(home, "release"), "JAVA_VERSION=\""+version+"\"\n")
	java = filepath.Join(home, "bin/java")
	write(t, java, "")
	in, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(java, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	require.NoError(t, os.Chmod(java, 0o755))
	return java
}

// TestJavaOfTheExecutable: "java" alone does not say where it lies, the process's
// executable does.
func TestJavaOfTheExecutable(t *testing.T) {
	dir := t.TempDir()
	fatJar(t, filepath.Join(dir, "app.jar"), "spring.threads.virtual.enabled=true\n")
	for version, virtual := range map[string]bool{"21.0.8": true, "17.0.15": false} {
		s := startFake(t, fake{path: jdk(t, version), args: []string{"java", "-jar", "app.jar"}, Dir: dir})
		c, unavailable := only(t, inChildren(t), s, 8080)
		require.Empty(t, unavailable)
		require.Equal(t, virtual, c.VirtualThreads.Value)
		require.Equal(t, virtual, c.MaxThreads == nil)
	}
}

// TestUnknownVirtualThreads: whether maxThreads counts is then not known either,
// unless worker threads are seen.
func TestUnknownVirtualThreads(t *testing.T) {
	dir := t.TempDir()
	fatJar(t, filepath.Join(dir, "app.jar"), "spring.threads.virtual.enabled=true\n")
	xml := base(t, `<Server><Service><Connector port="8080" useVirtualThreads="${vt}" maxThreads="42"/></Service></Server>`)
	write(t, filepath.Join(xml, "conf/catalina.properties"), "org.apache.tomcat.util.digester.PROPERTY_SOURCE=com.example.Secrets\n")
	for name, f := range map[string]fake{
		"Spring Boot": {args: []string{"java", "-jar", "app.jar"}, Dir: dir},
		"standalone":  {args: tomcatArgs(xml)},
	} {
		t.Run(name, func(t *testing.T) {
			c, unavailable := only(t, inChildren(t), startFake(t, f), 8080)
			require.NotEmpty(t, unavailable)
			require.Nil(t, c.VirtualThreads)
			require.True(t, c.MaxThreads.Uncertain)
			require.Equal(t, virtualDoubt, c.MaxThreads.Note)

			f.Threads = []string{"http-nio-8080-e", "http-nio-8080-A", "http-nio-8080-P"}
			c, _ = only(t, inChildren(t), startFake(t, f), 8080)
			require.Equal(t, 1, *c.PoolThreads)
			require.False(t, c.MaxThreads.Uncertain)
		})
	}
}

// TestLongVirtualThreadsWithoutPerfData: Java's version is found where the JVM does
// not publish it.
func TestLongVirtualThreadsWithoutPerfData(t *testing.T) {
	needServers(t)
	_, java := javas(t)
	if java == "" {
		t.Skip("no Java 21 or newer in /usr/lib/jvm")
	}
	port := nettest.FreePorts(t, 1)[0]
	cmd := exec.CommandContext(t.Context(), java, "-XX:TieredStopAtLevel=1", "-Xmx128m", "-XX:-UsePerfData", "-jar", bootApp(t, "3.5.16"),
		fmt.Sprintf("--server.port=%d", port), "--spring.threads.virtual.enabled=true")
	cmd.Args[0] = "java"
	cmd.Dir = t.TempDir()
	s := serve(t, cmd)
	s.await(t, fmt.Sprintf("http://127.0.0.1:%d/limits", port))
	connectors, unavailable := discover(t, s, listening(t, port))
	require.Empty(t, unavailable)
	c := connectorOn(t, connectors, uint16(port))
	require.True(t, c.VirtualThreads.Value)
	require.Nil(t, c.MaxThreads)
}
