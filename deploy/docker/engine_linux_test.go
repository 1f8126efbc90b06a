package docker

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// engine is a dockerd of our own.
type engine struct {
	client string // the docker program
	env    []string
}

// gateway is this network namespace's address in the engine's default network.
const gateway = "172.17.0.1"

// startEngine runs dockerd in this process's namespaces: no firewall rules; the
// default network and those that tests make are bridges of this network
// namespace.
func startEngine(t *testing.T, dir, cgroups string) *engine {
	t.Helper()
	socket := "unix://" + filepath.Join(dir, "docker.sock")
	log, err := os.Create(filepath.Join(dir, "dockerd.log"))
	require.NoError(t, err)
	defer log.Close()
	cmd := exec.Command("dockerd",
		"--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"--pidfile", filepath.Join(dir, "dockerd.pid"), "--host", socket,
		"--bip="+gateway+"/16", "--iptables=false", "--ip6tables=false",
		"--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", "/"+cgroups)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start(), "Debian: its Docker engine, iptables")
	t.Cleanup(func() { stopEngine(t, cmd, log.Name()) })
	e := &engine{client: dockerClient(), env: append(os.Environ(),
		"DOCKER_HOST="+socket, "DOCKER_CONFIG="+dir, "DOCKER_BUILDKIT=1")}
	nettest.Within(t, 30*time.Second, "the engine answers", func() bool { return e.command(t.Context(), "info").Run() == nil })
	return e
}

// stopEngine also waits for the containers' end and unmounts what was mounted.
func stopEngine(t *testing.T, cmd *exec.Cmd, log string) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	err := cmd.Wait()
	if t.Failed() {
		text, _ := os.ReadFile(log)
		t.Logf("dockerd: %v\n%s", err, text[max(0, len(text)-4000):])
	}
}

// dockerClient prefers the client of the engine's own package: a newer one
// leaves BuildKit to a plugin.
func dockerClient() string {
	const packaged = "/usr/bin/docker"
	if _, err := os.Stat(packaged); err == nil {
		return packaged
	}
	return "docker"
}

func (e *engine) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, e.client, args...)
	cmd.Env = e.env
	return cmd
}

// docker runs the client to its end and returns what it printed.
func (e *engine) docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := e.try(t, args...)
	require.NoError(t, err, "docker %s: %s", strings.Join(args, " "), out)
	return out
}

// try is docker for what may fail; what it printed includes its complaints then.
func (e *engine) try(t *testing.T, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := e.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		out.Write(errs.Bytes())
	}
	return strings.TrimSpace(out.String()), err
}

// start runs a container until the test ends; it returns its id.
func (e *engine) start(t *testing.T, args ...string) string {
	t.Helper()
	id := e.docker(t, append([]string{"run", "-d"}, args...)...)
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := e.command(context.Background(), "logs", "--tail", "30", id).CombinedOutput()
			t.Logf("container %v:\n%s", args, logs)
		}
		_ = e.command(context.Background(), "rm", "-f", "-v", id).Run()
	})
	return id
}

// inspect evaluates a template on a container or an image.
func (e *engine) inspect(t *testing.T, id, template string) string {
	t.Helper()
	return e.docker(t, "inspect", "-f", template, id)
}
