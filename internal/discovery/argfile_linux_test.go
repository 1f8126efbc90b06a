package discovery

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// TestArgumentFileUnread: a process with Tomcat's threads whose class path or
// main class stands in a file that cannot be read. That is said.
func TestArgumentFileUnread(t *testing.T) {
	for _, args := range [][]string{{"java", "@gone"}, {"java", "-cp", "@gone", "com.example.Main"}} {
		s := startFake(t, fake{args: args, Dir: t.TempDir(), Threads: []string{"http-nio-8080-e"}})
		c, unavailable := only(t, inChildren(t), s, 8080)
		require.Equal(t, model.ServerTomcat().Name, c.Server)
		require.Nil(t, c.MaxConnections)
		require.NotEmpty(t, unavailable)
		require.Equal(t, "argument file @gone", unavailable[0].What)
	}
}

// TestLongBootWithItsClassPathInAFile: the layout of Jib's images (Jib 3.1 and newer,
// Java 9 and newer), as the real launcher starts it.
func TestLongBootWithItsClassPathInAFile(t *testing.T) {
	needServers(t)
	java, _ := javas(t)
	app := jibApp(t, bootApp(t, "3.5.16"))
	port := nettest.FreePorts(t, 1)[0]
	cmd := exec.CommandContext(t.Context(), java, "-XX:TieredStopAtLevel=1", "-Xmx128m",
		"-cp", "@"+app+"/jib-classpath-file", "@"+app+"/jib-main-class-file", fmt.Sprintf("--server.port=%d", port))
	cmd.Dir = t.TempDir()
	s := serve(t, cmd)
	truth := parseBeans(t, s.await(t, fmt.Sprintf("http://127.0.0.1:%d/limits", port)))
	connectors, unavailable := discover(t, s, listening(t, port))
	require.Empty(t, unavailable)
	c := connectorOn(t, connectors, uint16(port))
	compareWithBeans(t, "jib", c, truth, port)
	require.Equal(t, "spring-boot", c.Framework)
	require.Equal(t, 50, c.MaxConnections.Value)
	require.Equal(t, app+"/resources/application.yml", c.MaxConnections.Source)
}

// jibApp lays an executable jar out as Jib does.
func jibApp(t *testing.T, jar string) string {
	t.Helper()
	app := t.TempDir()
	z, err := zip.OpenReader(jar)
	require.NoError(t, err)
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		name := strings.Replace(strings.Replace(f.Name, "BOOT-INF/lib/", "libs/", 1), "BOOT-INF/", "", 1)
		if name == f.Name || f.FileInfo().IsDir() {
			continue
		}
		in, err := f.Open()
		require.NoError(t, err)
		data, err := io.ReadAll(in)
		require.NoError(t, err)
		write(t, filepath.Join(app, name), string(data))
	}
	write(t, filepath.Join(app, "resources/application.yml"), "server.tomcat.max-connections: 50\nserver.tomcat.mbeanregistry.enabled: true\n")
	libs, err := os.ReadDir(filepath.Join(app, "libs"))
	require.NoError(t, err)
	classPath := []string{app + "/resources", app + "/classes"}
	for _, lib := range libs {
		classPath = append(classPath, app+"/libs/"+lib.Name())
	}
	write(t, filepath.Join(app, "jib-classpath-file"), strings.Join(classPath, ":"))
	write(t, filepath.Join(app, "jib-main-class-file"), "app.Main")
	return app
}
