package cluster

import (
	"archive/tar"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page that takes long, on a server with few of everything.
const (
	slowPage  = `<% Thread.sleep(Long.parseLong(request.getParameter("ms"))); %>done`
	fewOfThem = `<?xml version="1.0"?>
<Server port="-1">
  <Service name="Catalina">
    <Connector port="8080" protocol="HTTP/1.1" maxThreads="4" maxConnections="20" acceptCount="5" minSpareThreads="4"/>
    <Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps" unpackWARs="false"/></Engine>
  </Service>
</Server>
`
)

// writeDistroless makes an image of a Java runtime with what it links and a Tomcat: no shell,
// no package manager, no other program.
func writeDistroless(t *testing.T, c *cluster) string {
	t.Helper()
	runtime := c.file("runtime")
	jlink, err := exec.LookPath("jlink")
	require.NoError(t, err, "Debian: openjdk-17-jdk-headless")
	run := func(name string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		return string(out)
	}
	run(jlink, "--add-modules", "java.se,jdk.unsupported,jdk.management", "--strip-debug", "--no-man-pages", "--no-header-files", "--output", runtime)
	linked := run("ldd", filepath.Join(runtime, "bin/java"), filepath.Join(runtime, "lib/server/libjvm.so"), filepath.Join(runtime, "lib/libnio.so"), filepath.Join(runtime, "lib/libzip.so"))
	layer := writeLayer(t, c, "distroless.layer", func(w *tar.Writer) {
		require.NoError(t, filepath.WalkDir(runtime, func(source string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				inside, _ := filepath.Rel(runtime, source)
				addFile(t, w, source, filepath.Join("usr/lib/jvm", inside), 0o755)
			}
			return err
		}))
		added := map[string]bool{}
		for _, file := range regexp.MustCompile(`/lib(64)?/[^ ]*\.so[.0-9]*`).FindAllString(linked, -1) {
			if _, err := os.Stat(file); err == nil && !added[file] {
				added[file] = true
				addFile(t, w, file, file[1:], 0o755)
			}
		}
		addTomcat(t, w, c.program(tomcat))
		addContent(t, w, "usr/local/tomcat/conf/server.xml", []byte(fewOfThem), 0o644)
		addContent(t, w, "usr/local/tomcat/webapps/ROOT/slow.jsp", []byte(slowPage), 0o644)
	})
	return writeImage(t, c.file("distroless.image"), "orders:distroless", imageConfig{
		Entrypoint: []string{
			"/usr/lib/jvm/bin/java", "-Dcatalina.home=/usr/local/tomcat", "-cp",
			"/usr/local/tomcat/bin/bootstrap.jar:/usr/local/tomcat/bin/tomcat-juli.jar", "org.apache.catalina.startup.Bootstrap", "start",
		},
		WorkingDir: "/usr/local/tomcat", User: "1001:1001",
	}, layer)
}
