package discovery

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// trap is a server that counts who talked to it.
type trap struct {
	*httptest.Server
	connected, asked atomic.Int32
}

// setTrap listens on an address of a namespace, on a given port.
func setTrap(t *testing.T, ns *nettest.NS, address string, port uint16) *trap {
	t.Helper()
	tr := &trap{}
	answers := &actuatorStub{names: []string{"http-nio-8080"}}
	tr.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tr.asked.Add(1)
		answers.ServeHTTP(w, r)
	}))
	require.NoError(t, tr.Listener.Close())
	ns.Do(func() {
		var err error
		tr.Listener, err = net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(int(port))))
		require.NoError(t, err)
	})
	tr.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			tr.connected.Add(1)
		}
	}
	tr.Start()
	t.Cleanup(tr.Close)
	return tr
}

// A user and a password reach the named process only, in its own namespace, at
// the address where it listens, whatever else has the port.
func TestCredentialsReachTheNamedProcessOnly(t *testing.T) {
	const port = 18081
	theirs, strangers := nettest.Namespace(t), nettest.Namespace(t)
	mine := setTrap(t, theirs, "::1", port) // as if it were the Tomcat's: the socket is this process's
	other4, other6 := setTrap(t, strangers, "127.0.0.1", port), setTrap(t, strangers, "::1", port)
	base, err := url.Parse("http://user:word@localhost:18081/actuator")
	require.NoError(t, err)
	d := &door{
		proc: hostfs.Real(t), pid: os.Getpid(), namespace: theirs.Path(), url: base, guarded: true,
		sockets: []netip.AddrPort{netip.MustParseAddrPort("[::1]:18081")},
	}
	readings, err := askAll(t.Context(), actuatorClient(d), base.String())
	require.NoError(t, err)
	require.Len(t, readings, 1)
	require.Positive(t, mine.asked.Load())
	require.Zero(t, other4.connected.Load())
	require.Zero(t, other6.connected.Load())

	mine.asked.Store(0)
	stranger := exec.Command("sleep", "60")
	require.NoError(t, stranger.Start())
	defer func() { _, _ = stranger.Process.Kill(), stranger.Wait() }()
	d.pid = stranger.Process.Pid // which does not own the socket
	_, err = askAll(t.Context(), actuatorClient(d), base.String())
	require.ErrorIs(t, err, errAnother)
	require.NotContains(t, err.Error(), "word")
	require.Zero(t, mine.asked.Load(), "not a byte was sent")
}

// Outside of the caller's namespace credentials need a process to be named.
func TestCredentialsNeedAName(t *testing.T) {
	ns := nettest.Namespace(t)
	s := ns.Command("sleep", "60")
	require.NoError(t, s.Start())
	defer func() { _, _ = s.Process.Kill(), s.Wait() }()
	require.Eventually(t, func() bool { // it starts in ours
		there, err := os.Stat(netns.Path("/proc", s.Process.Pid))
		here, hereErr := os.Stat(callersNamespace)
		return err == nil && hereErr == nil && !os.SameFile(there, here)
	}, time.Minute, 5*time.Millisecond)
	d := inChildren(t)
	sockets := match.Connectors{netip.MustParseAddrPort("127.0.0.1:8081"): &model.Connector{}}
	for name, tt := range map[string]struct {
		a    Actuator
		want error
	}{
		"found by its port":      {Actuator{URL: "http://user:word@127.0.0.1:8081/a"}, errSecret},
		"named":                  {Actuator{URL: "http://user:word@127.0.0.1:8081/a", PID: s.Process.Pid}, nil},
		"without credentials":    {Actuator{URL: "http://127.0.0.1:8081/a"}, nil},
		"a URL that is no URL":   {Actuator{URL: "http://[", PID: s.Process.Pid}, errURL},
		"in its own settings":    {Actuator{URL: "http://10.9.9.9:8081/a", discovered: true}, nil},
		"a name of another host": {Actuator{URL: "http://metadata.internal:8081/a", PID: s.Process.Pid}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := d.doorOf(s.Process.Pid, tt.a, sockets)
			require.ErrorIs(t, got.err, tt.want)
			if tt.want != nil {
				return
			}
			addresses, err := got.addresses(t.Context())
			if name == "a name of another host" {
				require.ErrorIs(t, err, errName)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, addresses)
		})
	}
}
