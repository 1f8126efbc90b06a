package guest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

func loaded(t *testing.T, module string) bool {
	t.Helper()
	list, err := os.ReadFile("/proc/modules")
	require.NoError(t, err)
	return bytes.Contains(append([]byte("\n"), list...), []byte("\n"+module+" "))
}

// unload removes tcp_diag and inet_diag, and skips where they are built in.
func unload(t *testing.T) {
	t.Helper()
	for _, module := range []string{"tcp_diag", "inet_diag"} {
		if loaded(t, module) {
			require.Eventually(t, func() bool { return exec.Command("rmmod", module).Run() == nil },
				time.Minute, 100*time.Millisecond, module)
		}
	}
	release, err := proc(t).KernelRelease()
	require.NoError(t, err)
	if !exists("/lib/modules/" + release + "/tcp_diag.ko") {
		report("tcp_diag", "built in")
		t.Skip("tcp_diag is no module here")
	}
}

func probe(t *testing.T) error {
	t.Helper()
	c, err := sockdiag.Dial()
	require.NoError(t, err)
	defer c.Close()
	return c.Probe()
}

// A request of any user makes the kernel load both modules (request_module in
// sock_diag_rcv_msg and inet_diag_lock_handler).
func TestTCPDiagIsLoadedOnDemand(t *testing.T) {
	inGuest(t)
	unload(t)
	if nobody, _ := nettest.AsNobody(t, ""); nobody {
		require.NoError(t, probe(t))
		return
	}
	require.True(t, loaded(t, "tcp_diag"))
	report("tcp_diag", "module, loaded on demand")
}

// forbid takes away the kernel's program for loading modules until the test
// ends, and the modules with it.
func forbid(t *testing.T) {
	t.Helper()
	unload(t)
	write(t, "/proc/sys/kernel/modprobe", "/bin/false")
	t.Cleanup(func() { write(t, "/proc/sys/kernel/modprobe", "/sbin/modprobe") })
}

func TestSnapshotWithoutTCPDiag(t *testing.T) {
	inGuest(t)
	forbid(t)
	require.ErrorIs(t, probe(t), sockdiag.ErrNotSupported)
	for _, args := range [][]string{{"snapshot", "--all"}, {"watch", "--port", "8080"}} {
		var stderr bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		cmd := exec.CommandContext(ctx, tcpdiag, args...)
		cmd.Stderr = &stderr
		err := cmd.Run()
		stop()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 1, exit.ExitCode(), "%s: %s", args[0], stderr.String())
		require.Contains(t, stderr.String(), "modprobe tcp_diag")
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
	}
	report("without tcp_diag", "exit code 1, `modprobe tcp_diag`")
}

// The agent says in its readiness what is missing, and continues when it comes.
func TestAgentWithoutTCPDiag(t *testing.T) {
	inGuest(t)
	forbid(t)
	const address = "127.0.0.1:10900"
	startAgent(t, "--all", "--web.listen-address", address)
	ready := func() (int, string) {
		response, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	require.Eventually(t, func() bool {
		code, body := ready()
		return code == http.StatusServiceUnavailable && strings.Contains(body, "modprobe tcp_diag")
	}, time.Minute, 200*time.Millisecond)
	require.NoError(t, exec.Command("modprobe", "tcp_diag").Run())
	require.Eventually(t, func() bool {
		code, _ := ready()
		return code == http.StatusOK
	}, 60*time.Second, 200*time.Millisecond)
	report("agent without tcp_diag", "not ready, says why; ready once it is loaded")
}

// startAgent runs the agent until the test ends; what it logs is shown if the
// test fails.
func startAgent(t *testing.T, args ...string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(tcpdiag, append([]string{"agent"}, args...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
}

// run runs a program to its end.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
}
