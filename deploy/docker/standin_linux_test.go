package docker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// standIns are the programs of Debian and of the Go module that take the place
// of a registry's images in the compose file, by service. Grafana's has what
// its container needs to start, and no Grafana.
func standIns(f *fixture) map[string]struct{ program, tail string } {
	return map[string]struct{ program, tail string }{
		"prometheus": {lookup("prometheus"), `
			USER 65534:65534
			WORKDIR /prometheus
			ENTRYPOINT ["/bin/program"]
			CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]`},
		"alertmanager": {lookup("prometheus-alertmanager", "alertmanager"), `
			COPY default.tmpl email.tmpl /usr/share/prometheus/alertmanager/
			USER 65534:65534
			WORKDIR /alertmanager
			ENTRYPOINT ["/bin/program"]
			CMD ["--config.file=/etc/alertmanager/alertmanager.yml", "--storage.path=/alertmanager"]`},
		"k6": {f.K6, `
			USER 12345:12345
			ENTRYPOINT ["/bin/program"]`},
		"grafana": {lookup("sleep"), `
			USER 472
			STOPSIGNAL SIGKILL
			ENTRYPOINT ["/bin/program", "infinity"]`},
	}
}

func lookup(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return names[0]
}

// standIn builds an image of a program on the Debian that is there.
func (w *world) standIn(t *testing.T, tag, program, tail string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("/usr/share/prometheus/alertmanager"))) // which Debian's reads
	content, err := os.ReadFile(program)
	require.NoError(t, err, "Debian: prometheus, prometheus-alertmanager")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "program"), content, 0o755))
	w.buildIn(t, dir, tag, `FROM `+jre+`
COPY program /bin/program
RUN mkdir /prometheus /alertmanager && chown 65534:65534 /prometheus /alertmanager
`+tail)
}

// buildBuilders makes the images that the Dockerfiles compile in, of the Go,
// the JDK and the Maven that are here. They hold no module and no artifact:
// those come from proxies, as in a company without the internet.
func (w *world) buildBuilders(t *testing.T) {
	proxies := w.serveProxies(t)
	w.goproxy = proxies + "/go"

	golang := filepath.Join(w.Dir, "golang")
	require.NoError(t, os.MkdirAll(golang, 0o755))
	goroot, err := goEnv(t.Context(), "GOROOT")
	require.NoError(t, err)
	require.NoError(t, quiet(t.Context(), "cp", "-rL", goroot, filepath.Join(golang, "go")))
	w.buildIn(t, golang, "golang:1.26", `FROM `+jre+`
COPY go /usr/local/go
ENV PATH=/usr/local/go/bin:/usr/bin:/bin GOPATH=/go GOTOOLCHAIN=local
`)

	maven := filepath.Join(w.Dir, "maven")
	require.NoError(t, os.MkdirAll(maven, 0o755))
	for name, program := range map[string]string{"jdk": "javac", "maven": "mvn"} {
		path, err := filepath.EvalSymlinks(lookup(program)) // in bin of where the whole is
		require.NoError(t, err)
		// A link of Debian's to a package that is not installed leads nowhere.
		from, to := filepath.Dir(filepath.Dir(path)), filepath.Join(maven, name)
		_ = quiet(t.Context(), "cp", "-rL", from, to)
	}
	settings := fmt.Sprintf("<settings><mirrors><mirror><id>proxy</id><mirrorOf>*</mirrorOf><url>%s/maven</url></mirror></mirrors></settings>", proxies)
	require.NoError(t, os.WriteFile(filepath.Join(maven, "settings.xml"), []byte(settings), 0o600))
	w.buildIn(t, maven, "maven:3-eclipse-temurin-17", `FROM `+jre+`
COPY jdk /opt/java/openjdk
COPY maven /usr/share/maven
COPY settings.xml /root/.m2/settings.xml
RUN ln -s /usr/share/maven/bin/mvn /usr/bin/mvn
ENV JAVA_HOME=/opt/java/openjdk MAVEN_HOME=/usr/share/maven PATH=/opt/java/openjdk/bin:/usr/bin:/bin
`)
}

func (w *world) buildIn(t *testing.T, dir, tag, dockerfile string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600))
	w.docker(t, "build", "-q", "--network", "none", "-t", tag, dir)
}

// serveProxies serves what download left in the caches, to containers.
func (w *world) serveProxies(t *testing.T) string {
	t.Helper()
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", net.JoinHostPort(gateway, "0"))
	require.NoError(t, err)
	mux := http.NewServeMux()
	for path, dir := range map[string]string{"/go": w.Modules, "/maven": w.Repository} {
		mux.Handle(path+"/", http.StripPrefix(path, http.FileServer(http.Dir(dir))))
	}
	server := httptest.NewUnstartedServer(mux)
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// download fills the caches of Go and Maven with all that the images' builds
// ask for; it returns their folders.
func download(ctx context.Context, dir string) (modules, artifacts string, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download")
	cmd.Dir = "../.."
	if err := run(cmd); err != nil {
		return "", "", err
	}
	if modules, err = goEnv(ctx, "GOMODCACHE"); err != nil {
		return "", "", err
	}
	source := filepath.Join(dir, "sample-server-source")
	if err := os.CopyFS(source, os.DirFS("../../internal/test/lab/sample-server")); err != nil {
		return "", "", err
	}
	cmd = exec.CommandContext(ctx, "mvn", "-q", "-B", "package")
	cmd.Dir = source
	if err := run(cmd); err != nil {
		return "", "", err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(modules, "cache", "download"), filepath.Join(home, ".m2", "repository"), err
}

func goEnv(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", name).Output()
	return strings.TrimSpace(string(out)), err
}
