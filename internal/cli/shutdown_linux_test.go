package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// lingers starts an agent that is asked to stop and lingers: it says that it is
// not ready, and is healthy.
func lingers(t *testing.T, ns *nettest.NS, delay time.Duration, args ...string) *process {
	t.Helper()
	p := start(t, ns, nil, append(args, "--shutdown-delay", delay.String())...)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		code, _ := p.try(http.MethodGet, "/-/ready")
		return code == http.StatusServiceUnavailable
	}, time.Minute, 10*time.Millisecond)
	code, _ := p.try(http.MethodGet, "/-/healthy")
	require.Equal(t, http.StatusOK, code)
	return p
}

// A sidecar is asked to stop when its server has ended: what the server's end did
// to the clients in its queue is scraped after that.
func TestAgentGoesOnForTheShutdownDelay(t *testing.T) {
	ns := nettest.Namespace(t)
	var server *nettest.Listener
	ns.Do(func() {
		server = nettest.Listen(t, nettest.ListenOptions{Backlog: 10})
		nettest.Queue(t, server.Addr, 3)
	})
	port := server.Addr.Port()
	const delay = 4 * time.Second
	told := time.Now()
	p := lingers(t, ns, delay, "--port", fmt.Sprint(port), "--scan-interval", "100ms")
	server.Close()
	p.becomes(t, series("tcpdiag_target_up", port), 0)
	p.becomes(t, fmt.Sprintf(`tcpdiag_listener_queue_resets_total\{listener="127\.0\.0\.1:%d".*\}`, port), 3)
	p.hangUp(t) // nothing to read again
	err := <-p.done
	p.done <- err
	require.NoError(t, err)
	require.Greater(t, time.Since(told), delay)
	p.logs(t, "shutdown-delay")
}

func TestSecondSignalEndsTheShutdownDelay(t *testing.T) {
	p := lingers(t, nettest.Namespace(t), time.Minute)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.done:
		p.done <- err
	case <-time.After(time.Minute):
		t.Fatal("still running")
	}
}

// An agent in an ephemeral container, which nobody can remove, ends by itself, and well.
func TestAgentEndsAfterItsLifetime(t *testing.T) {
	p := start(t, nettest.Namespace(t), nil, "--lifetime", "2s")
	err := <-p.done
	p.done <- err
	require.NoError(t, err)
}

func TestIDsAreThoseOfTheProcess(t *testing.T) {
	proc := hostfs.Real(t)
	uid, err := effective(proc, os.Getpid(), "Uid")
	require.NoError(t, err)
	gid, err := effective(proc, os.Getpid(), "Gid")
	require.NoError(t, err)
	require.Equal(t, []int64{int64(os.Geteuid()), int64(os.Getegid())}, []int64{uid, gid})

	var stdout, stderr bytes.Buffer
	require.Zero(t, Main(t.Context(), []string{"ids"}, &stdout, &stderr), stderr.String())
	var ids userIDs
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &ids))
}
