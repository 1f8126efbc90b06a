package cli

import (
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// snapshotOf asks a snapshot that lasts long enough to decide what happens in
// between.
func snapshotDuring(t *testing.T, ns *nettest.NS, happens func(), args ...string) api.Snapshot {
	t.Helper()
	cmd := tcpdiag(ns, append([]string{"snapshot", "--output", "json", "--interval", "7s"}, args...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	waitForTap(t, ns)
	happens()
	var s api.Snapshot
	require.NoError(t, json.NewDecoder(out).Decode(&s))
	require.NoError(t, cmd.Wait())
	return s
}

// waitForTap returns when the namespace has a packet socket that receives
// (packet_seq_show's column Running).
func waitForTap(t *testing.T, ns *nettest.NS) {
	t.Helper()
	require.Eventually(t, func() bool {
		var fields []string
		ns.Do(func() {
			b, err := os.ReadFile("/proc/thread-self/net/packet")
			require.NoError(t, err)
			_, sockets, _ := strings.Cut(string(b), "\n")
			fields = strings.Fields(sockets)
		})
		return len(fields) > 5 && fields[5] == "1"
	}, time.Minute, 5*time.Millisecond)
}

// Six clients are in, nine give up: that is the number of clients, however many packets there are.
func TestSnapshotCountsClients(t *testing.T) {
	ns := nettest.Namespace(t)
	var addr netip.AddrPort
	ns.Do(func() { addr = nettest.Listen(t, nettest.ListenOptions{Backlog: watchedBacklog}).Addr })
	s := snapshotDuring(t, ns, func() {
		ns.Do(func() {
			nettest.Queue(t, addr, watchedBacklog+1)
			nettest.Overflow(t, addr, 9)
		})
	}, "--port", strconv.Itoa(int(addr.Port())))
	l := s.Listeners[0]
	require.NotNil(t, l.Clients)
	require.EqualValues(t, 6, *l.Clients.Connected)
	require.EqualValues(t, 9, *l.Clients.GaveUp)
	require.Equal(t, []api.ClientSource{{Address: "127.0.0.1", Clients: 9}}, l.Clients.Losers)
	require.EqualValues(t, 9, l.Losses.DroppedPackets)
	require.Regexp(t, `^(In the last [0-9.]+ s )?9 clients gave up connecting[^;]*[;.] 9 packets were dropped`, l.Verdict.Summary)
	require.Empty(t, s.Unavailable)
}

func TestSnapshotCountsRefusedClients(t *testing.T) {
	ns := nettest.Namespace(t)
	s := snapshotDuring(t, ns, func() {
		ns.Do(func() {
			for range 5 {
				_, err := net.Dial("tcp", "127.0.0.1:8080")
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
			}
		})
	}, "--port", "8080")
	require.EqualValues(t, 5, *s.Listeners[0].Clients.Refused)
	require.Contains(t, s.Listeners[0].Verdict.Summary, "5 clients were refused")
}

// Without the capability nothing else changes, and what is missing is said.
func TestWithoutCapNetRaw(t *testing.T) {
	ns := nettest.Namespace(t)
	var addr netip.AddrPort
	ns.Do(func() { addr = nettest.Listen(t, nettest.ListenOptions{Backlog: watchedBacklog}).Addr })
	run := func(mode string) ([]byte, error) {
		cmd := ns.Command("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", "--", os.Args[0],
			"snapshot", "--output", "json", "--interval", "300ms", "--port", strconv.Itoa(int(addr.Port())), "--handshakes", mode)
		cmd.Env = append(os.Environ(), mainVariable+"=1")
		return cmd.Output()
	}
	var s api.Snapshot
	out, err := run("auto")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &s))
	require.Nil(t, s.Listeners[0].Clients)
	require.Len(t, s.Unavailable, 1)
	require.Contains(t, s.Unavailable[0].How, "CAP_NET_RAW")

	s = api.Snapshot{}
	out, err = run("off")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &s))
	require.Empty(t, s.Unavailable)

	_, err = run("on")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, string(exit.Stderr), "handshakes cannot be followed")
}

// The agent exports them.
func TestAgentCountsClients(t *testing.T) {
	ns := nettest.Namespace(t)
	var addr netip.AddrPort
	ns.Do(func() { addr = nettest.Listen(t, nettest.ListenOptions{Backlog: watchedBacklog}).Addr })
	p := start(t, ns, nil, "--port", strconv.Itoa(int(addr.Port())), "--scan-interval", "200ms")
	waitForTap(t, ns)
	ns.Do(func() {
		nettest.Queue(t, addr, watchedBacklog+1)
		nettest.Overflow(t, addr, 4)
	})
	p.becomes(t, `tcpdiag_listener_clients_total{.*outcome="gave_up"}`, 4)
	p.becomes(t, `tcpdiag_listener_clients_total{.*outcome="connected"}`, 6)
	p.becomes(t, `tcpdiag_port_refused_clients_total{.*}`, 0)
}
