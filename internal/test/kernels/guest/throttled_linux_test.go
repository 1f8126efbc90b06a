package guest

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// A server that a CPU quota keeps from accepting: its limits are far away, and
// the quota is what to change.
func TestVerdictOfAQuota(t *testing.T) {
	inGuest(t)
	pid, address := throttledServer(t)
	const agent = "127.0.0.1:10902"
	startAgent(t, "--port", fmt.Sprint(address.Port()), "--web.listen-address", agent,
		"--max-connections", "500", "--max-threads", "500")
	require.Eventually(t, func() bool { return ready(agent) }, time.Minute, 200*time.Millisecond)
	throttled(t, pid)
	var v view
	v.watch(t, agent, demo.BurstOptions{
		Address: address.String(), Clients: 60, ConnectTimeout: 5 * time.Second, RequestTimeout: 10 * time.Second,
	})
	report("a server throttled by cpu.max", "%s", strings.Join(v.causes, ", then "))
	require.Contains(t, v.causes, "cpu_throttled", "%s", v.last)
}

// throttledServer is a process of this test binary that burns its two percent
// of a CPU and serves requests at the same time.
func throttledServer(t *testing.T) (pid int, address netip.AddrPort) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program, "-test.run", "^TestServerHere$")
	cmd.Env = append(os.Environ(), "TCPDIAG_SERVER=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	proctest.Run(t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	address, err = netip.ParseAddrPort(strings.TrimSpace(line))
	require.NoError(t, err)
	dir := group(t, "throttled", map[string]string{"cpu.max": "2000 100000"})
	write(t, filepath.Join(dir, "cgroup.procs"), fmt.Sprint(cmd.Process.Pid))
	return cmd.Process.Pid, address
}

// TestServerHere is the server of TestVerdictOfAQuota; it runs until it is killed.
func TestServerHere(t *testing.T) {
	if os.Getenv("TCPDIAG_SERVER") == "" {
		t.Skip("a part of TestVerdictOfAQuota")
	}
	server, err := demo.Listen(t.Context(), demo.ServerOptions{
		Address: "127.0.0.1:0", MaxThreads: 500, MaxConnections: 500, AcceptCount: 5, ServiceTime: time.Second,
	})
	require.NoError(t, err)
	fmt.Println(server.Address())
	for range 2 {
		go func() {
			for n := 0; ; n++ { // burns what the quota leaves
			}
		}()
	}
	require.NoError(t, server.Serve(t.Context()))
}
