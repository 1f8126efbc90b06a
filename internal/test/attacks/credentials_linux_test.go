package attacks

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// managementPort is where the named process, and whoever wants its credentials,
// listens.
const managementPort = 18090

// TestCredentials: a user and a password for one process's Actuator, by the name that
// the hosts file gives both families, and servers at both addresses of that port in the
// agent's namespace and in another one. Only the named process receives a byte, and
// from a viewer that cannot prove whose the socket is not even that one.
func TestCredentials(t *testing.T) {
	nettest.Root(t)
	program := build(t)
	for _, v := range viewers(t) {
		t.Run(v.name, func(t *testing.T) {
			if v.same {
				t.Skip("it cannot enter the process's namespace")
			}
			home, theirs := nettest.Namespace(t), nettest.Namespace(t)
			heard := filepath.Join(public(t), "heard")
			require.NoError(t, os.Chmod(filepath.Dir(heard), 0o777))
			s := &scene{viewer: v, java: asJava(t), pods: theirs}
			a := boot("application.properties", "")
			a.part = part{
				From: managementPort, To: managementPort + 1, Host: "::1", Accept: true, Heard: heard,
				Say: "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", Threads: []string{"http-nio-18090-e"},
			}
			pid := a.start(t, theirs, s.java)
			strangers := eavesdrop(t, home, "127.0.0.1", "::1")
			strangers = append(strangers, eavesdrop(t, theirs, "127.0.0.1")...)
			strangers = append(strangers, eavesdrop(t, nettest.Namespace(t), "127.0.0.1", "::1")...)

			config := filepath.Join(public(t), "tcpdiag.yml")
			text := fmt.Sprintf("targets:\n  - pid: %d\n    actuator: http://user:%s@localhost:%d/actuator\n", pid, secret, managementPort)
			require.NoError(t, os.WriteFile(config, []byte(text), 0o644))
			s.agent = startAgentWith(t, home, v, program, hostsOfBothFamilies(t), "--config", config)
			s.waitForActuator(t)
			given := func() bool {
				got, _ := os.ReadFile(heard)
				return strings.Contains(string(got), "Authorization: Basic ")
			}
			if v.caps == nil { // the first request may have come to nothing on a busy machine
				require.Eventually(t, given, 2*time.Minute, 20*time.Millisecond)
			}
			require.Equal(t, v.caps == nil, given())
			for _, stranger := range strangers {
				require.Zero(t, stranger.bytes.Load(), stranger.where)
			}
			s.stop(t)
			requireDiscreet(t, s.log.String())
		})
	}
}

// waitForActuator waits until it was asked and that came to nothing, which is said.
func (s *scene) waitForActuator(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		text := s.get(t, "/api/v1/snapshot")
		requireDiscreet(t, text)
		return strings.Contains(text, "Actuator of pid")
	}, 2*time.Minute, 20*time.Millisecond)
}

// hostsOfBothFamilies is a command line in front of another one's that gives it a
// hosts file in which localhost has two addresses.
func hostsOfBothFamilies(t *testing.T) []string {
	t.Helper()
	hosts := filepath.Join(public(t), "hosts")
	require.NoError(t, os.WriteFile(hosts, []byte("127.0.0.1 localhost\n::1 localhost\n"), 0o644))
	return []string{"unshare", "--mount", "--", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts}
}

// eavesdropper is a server that wants to be sent something.
type eavesdropper struct {
	where string
	bytes atomic.Int64
}

func eavesdrop(t *testing.T, ns *nettest.NS, addresses ...string) (all []*eavesdropper) {
	t.Helper()
	for _, address := range addresses {
		e := &eavesdropper{where: ns.Path() + " " + address}
		ns.Do(func() {
			l, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(managementPort)))
			require.NoError(t, err)
			var conns sync.WaitGroup
			conns.Go(func() { e.serve(l) })
			t.Cleanup(func() { _ = l.Close(); conns.Wait() })
		})
		all = append(all, e)
	}
	return all
}

func (e *eavesdropper) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			buf := make([]byte, 4096)
			for {
				n, err := c.Read(buf)
				e.bytes.Add(int64(n))
				if err != nil {
					return
				}
			}
		}()
	}
}
