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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	composeFile = "../compose/compose.yml"
	project     = "tcpdiag"
)

// testCompose runs the commands of README.md as they are written. The images
// that only a registry has are there by their names already.
func testCompose(t *testing.T, w *world) {
	commands := composeCommands(t)
	require.Len(t, commands, 3, "up, exec, down")
	up, snapshot, down := commands[0], commands[1], commands[2]
	images := composeImages(t)
	for name, in := range standIns(&w.fixture) {
		w.standIn(t, images[name], in.program, in.tail)
	}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := w.compose(context.Background(), "docker compose -f deploy/compose/compose.yml logs --no-color --tail 20").CombinedOutput()
			t.Logf("%s", logs)
		}
		_ = w.compose(context.Background(), down).Run()
	})
	w.composed(t, up)

	const prometheus, alertmanager = "http://127.0.0.1:9090", "http://127.0.0.1:9093"
	nettest.Within(t, time.Minute, "Prometheus scrapes the sidecar, which knows the limits", func() bool {
		n, err := query(t, prometheus, `tcpdiag_connector_limit{job="tcpdiag",limit="max_connections",listener=~".*:8080"}`)
		return err == nil && n == 20
	})
	require.Equal(t, "1001:999", w.inspect(t, w.composeID(t, "tcpdiag"), "{{.Config.User}}"))
	t.Run("the overload pages", func(t *testing.T) {
		nettest.Within(t, 3*time.Minute, "TcpdiagBacklogOverflow fires", func() bool {
			n, err := query(t, prometheus, `sum(ALERTS{alertname="TcpdiagBacklogOverflow",alertstate="firing"})`)
			return err == nil && n == 1
		})
		var body []byte
		nettest.Within(t, time.Minute, "Alertmanager has it", func() (has bool) {
			var err error
			body, err = fetch(t, alertmanager+"/api/v2/alerts?filter="+url.QueryEscape(`alertname="TcpdiagBacklogOverflow"`))
			return err == nil && strings.Contains(string(body), "TcpdiagBacklogOverflow")
		})
		require.Contains(t, string(body), "all 10 threads busy, 20/20 connections")
	})
	t.Run("the snapshot tells why", func(t *testing.T) {
		out := w.composed(t, snapshot)
		require.Contains(t, out, "LOSING")
		require.Regexp(t, `connections +(19|20) / 20`, out, "one may just have ended")
	})
	t.Run("every rule is loaded and none fails", func(t *testing.T) {
		body, err := fetch(t, prometheus+"/api/v1/rules")
		require.NoError(t, err)
		require.Contains(t, string(body), "TcpdiagListenerDown")
		require.NotContains(t, string(body), `"health":"err"`)
	})
	t.Run("healthy", func(t *testing.T) {
		nettest.Within(t, time.Minute, "HEALTHCHECK", func() bool {
			return w.inspect(t, w.composeID(t, "tcpdiag"), "{{.State.Health.Status}}") == "healthy"
		})
	})
	t.Run("Grafana's user reads what is mounted", func(t *testing.T) {
		w.docker(t, "exec", w.composeID(t, "grafana"), "cat", "/etc/grafana/provisioning/datasources/tcpdiag.yml",
			"/etc/grafana/provisioning/dashboards/tcpdiag.yml", "/etc/grafana/dashboards/backlog.json")
	})
	t.Run("and all goes away", func(t *testing.T) {
		w.composed(t, down)
		label := "label=com.docker.compose.project=" + project
		require.Empty(t, w.docker(t, "ps", "-aq", "--filter", label))
		require.Empty(t, w.docker(t, "network", "ls", "-q", "--filter", label))
		require.Empty(t, w.docker(t, "volume", "ls", "-q", "--filter", "dangling=true"))
	})
}

// composeCommands are the lines in the blocks of its README.md, to which the README.md at the top links.
func composeCommands(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../compose/README.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "docker compose ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	top, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.NotEmpty(t, lines)
	require.Contains(t, string(top), "(deploy/compose)")
	return lines
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

// compose is a command as it is written, from the top of the checkout.
func (w *world) compose(ctx context.Context, line string) *exec.Cmd {
	cmd := w.command(ctx, strings.Fields(line)[1:]...)
	cmd.Dir = "../.."
	cmd.Env = append(cmd.Env, "GOPROXY="+w.goproxy)
	return cmd
}

// composed runs it to its end and returns what it printed.
func (w *world) composed(t *testing.T, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	out, err := w.compose(ctx, line).CombinedOutput()
	require.NoError(t, err, "%s: %s", line, out)
	return string(out)
}

func (w *world) composeID(t *testing.T, service string) string {
	t.Helper()
	return w.docker(t, "ps", "-aq", "--filter", "label=com.docker.compose.project="+project, "--filter", "label=com.docker.compose.service="+service)
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
