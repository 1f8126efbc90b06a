package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	composeFile = "../compose/compose.yml"
	project     = "tcpdiag-test"
	k6Version   = "v1.8.1"
)

// standIns are the programs of Debian and of the Go module that take the place
// of a registry's images: the file runs unchanged, --no-build. Grafana has none.
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

// k6 is built once and kept in the user's cache, where the lab looks for it too.
func k6(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // no HOME
	}
	path := filepath.Join(cache, "tcpdiag", "k6-"+k6Version)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	work, err := os.MkdirTemp(filepath.Dir(path), "k6-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	fmt.Println("building k6 (once) …")
	cmd := exec.CommandContext(ctx, "go", "install", "go.k6.io/k6@"+k6Version)
	cmd.Env = append(os.Environ(), "GOBIN="+work, "GOFLAGS=")
	if err := run(cmd); err != nil {
		return "", err
	}
	return path, os.Rename(filepath.Join(work, "k6"), path)
}

// testCompose runs the file as it is, but for the images that only a registry has.
func testCompose(t *testing.T, w *world) {
	images := composeImages(t)
	w.docker(t, "tag", image, images["tcpdiag"])
	w.docker(t, "tag", app, images["app"])
	services := []string{"app", "tcpdiag"}
	for name, in := range standIns(&w.fixture) {
		w.standIn(t, images[name], in.program, in.tail)
		services = append(services, name)
	}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := w.composeCommand(context.Background(), "logs", "--no-color", "--tail", "20").CombinedOutput()
			t.Logf("%s", logs)
		}
		_ = w.composeCommand(context.Background(), "down", "-v", "--timeout", "1").Run()
	})
	up := w.composeCommand(t.Context(), append([]string{"up", "-d", "--no-build"}, services...)...)
	out, err := up.CombinedOutput()
	require.NoError(t, err, "docker-compose (Debian: docker-compose): %s", out)

	prometheus := "http://" + w.composeIP(t, "prometheus") + ":9090"
	within(t, time.Minute, "Prometheus scrapes the sidecar, which knows the limits", func() bool {
		n, err := query(t, prometheus, `tcpdiag_connector_limit{job="tcpdiag",limit="max_connections",listener=~".*:8080"}`)
		return err == nil && n == 20
	})
	require.Equal(t, "1001:999", w.inspect(t, w.composeID(t, "tcpdiag"), "{{.Config.User}}"))
	t.Run("the overload pages", func(t *testing.T) {
		within(t, 3*time.Minute, "TcpdiagBacklogOverflow fires", func() bool {
			n, err := query(t, prometheus, `sum(ALERTS{alertname="TcpdiagBacklogOverflow",alertstate="firing"})`)
			return err == nil && n == 1
		})
		alertmanager := "http://" + w.composeIP(t, "alertmanager") + ":9093"
		var body []byte
		within(t, time.Minute, "Alertmanager has it", func() (has bool) {
			var err error
			body, err = fetch(t, alertmanager+"/api/v2/alerts?filter="+url.QueryEscape(`alertname="TcpdiagBacklogOverflow"`))
			return err == nil && strings.Contains(string(body), "TcpdiagBacklogOverflow")
		})
		require.Contains(t, string(body), "maxConnections is reached")
	})
	t.Run("every rule is loaded and none fails", func(t *testing.T) {
		body, err := fetch(t, prometheus+"/api/v1/rules")
		require.NoError(t, err)
		require.Contains(t, string(body), "TcpdiagListenerDown")
		require.NotContains(t, string(body), `"health":"err"`)
	})
	t.Run("healthy", func(t *testing.T) {
		within(t, time.Minute, "HEALTHCHECK", func() bool {
			return w.inspect(t, w.composeID(t, "tcpdiag"), "{{.State.Health.Status}}") == "healthy"
		})
	})
}

// composeImages are the images by service, as the file names them.
func composeImages(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(composeFile)
	require.NoError(t, err)
	var file struct {
		Services map[string]struct{ Image string }
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	images := map[string]string{}
	for name, s := range file.Services {
		require.NotEmpty(t, s.Image, name)
		images[name] = s.Image
	}
	return images
}

// standIn builds an image of a program on the Debian that is there.
func (w *world) standIn(t *testing.T, tag, program, tail string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("/usr/share/prometheus/alertmanager"))) // which Debian's reads
	content, err := os.ReadFile(program)
	require.NoError(t, err, "Debian: prometheus, prometheus-alertmanager")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "program"), content, 0o755))
	text := "FROM jre:test\nCOPY program /bin/program\nRUN mkdir /prometheus /alertmanager && chown 65534:65534 /prometheus /alertmanager\n" + tail
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o600))
	w.docker(t, "build", "-q", "--network", "none", "-t", tag, dir)
}

func (w *world) composeCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "docker-compose", append([]string{"-p", project, "-f", composeFile}, args...)...)
	cmd.Env = w.env
	return cmd
}

func (w *world) composeID(t *testing.T, service string) string {
	t.Helper()
	return w.docker(t, "ps", "-aq", "--filter", "label=com.docker.compose.project="+project, "--filter", "label=com.docker.compose.service="+service)
}

func (w *world) composeIP(t *testing.T, service string) string {
	t.Helper()
	return w.inspect(t, w.composeID(t, service), "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}")
}

// query evaluates an expression of one series.
func query(t *testing.T, prometheus, expr string) (float64, error) {
	t.Helper()
	body, err := fetch(t, prometheus+"/api/v1/query?query="+url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, err
	}
	if len(answer.Data.Result) != 1 {
		return 0, errors.New("not one series")
	}
	var n float64
	_, err = fmt.Sscan(answer.Data.Result[0].Value[1].(string), &n)
	return n, err
}

func fetch(t *testing.T, address string) ([]byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}
