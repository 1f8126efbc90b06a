package schedule

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// watching8080: what else the test's process listens on is a backend of it.
func watching8080(o *Options) { o.All, o.Ports = false, []uint16{8080} }

// backend accepts connections and answers nothing until it is asked to.
func (l *lab) backend(t *testing.T) (address string, answer func()) {
	t.Helper()
	var listener net.Listener
	l.Do(func() {
		var err error
		listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
	})
	accepted := make(chan net.Conn, 100)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	var all []net.Conn
	t.Cleanup(func() {
		_ = listener.Close()
		for _, c := range all {
			_ = c.Close()
		}
	})
	return listener.Addr().String(), func() {
		for len(accepted) > 0 {
			all = append(all, <-accepted)
		}
		for _, c := range all {
			_, err := c.Write([]byte("answer"))
			require.NoError(t, err)
		}
	}
}

// ask opens connections and sends a request on the first few.
func (l *lab) ask(t *testing.T, address string, n, asked int) []net.Conn {
	t.Helper()
	out := make([]net.Conn, n)
	l.Do(func() {
		for i := range out {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			out[i] = c
			if i < asked {
				_, err = c.Write([]byte("question"))
				require.NoError(t, err)
			}
		}
	})
	return out
}

// stranger is another process that has a connection.
func (l *lab) stranger(t *testing.T, address string) {
	t.Helper()
	cmd := l.Command("bash", "-c", "exec 3<>/dev/tcp/"+strings.Replace(address, ":", "/", 1)+" && sleep 300")
	proctest.Run(t, cmd)
	require.Eventually(t, func() bool {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/3", cmd.Process.Pid))
		return err == nil && strings.HasPrefix(link, "socket:")
	}, time.Minute, 10*time.Millisecond, "it is connected")
}

// peerOf is what is known of a peer of the process behind a port.
func peerOf(t *testing.T, s *model.Snapshot, port uint16, address string) model.Peer {
	t.Helper()
	for i := range s.Listeners {
		l := &s.Listeners[i]
		if l.Port != port || l.Process == nil || l.Process.Downstream == nil {
			continue
		}
		for _, p := range l.Process.Downstream.Peers {
			if p.Address == netip.MustParseAddrPort(address) {
				return p
			}
		}
	}
	return model.Peer{}
}

// The test's own process listens, and has connections to a backend: what is in
// flight there is what was asked and not answered.
func TestDownstreamOfTheProcess(t *testing.T) {
	l := newLab(t, watching8080)
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 5})
	address, answer := l.backend(t)
	l.ask(t, address, 5, 3)

	read := func() model.Peer {
		l.scanner.ForgetOutgoing() // whatever the time
		return peerOf(t, l.scan(t), server.Addr.Port(), address)
	}
	require.Eventually(t, func() bool { return read().InFlight == 3 }, time.Minute, 10*time.Millisecond)
	got := read()
	require.Equal(t, 5, got.Connections)
	require.Positive(t, got.Oldest)
	require.NotNil(t, got.AllInFlight)
	require.Zero(t, *got.AllInFlight, "two of them were idle all the time")

	answer()
	require.Eventually(t, func() bool { p := read(); return p.Connections == 5 && p.InFlight == 0 }, time.Minute, 10*time.Millisecond)
}

// Where a table has many others the outgoing connections are walked apart, without
// tcp_info, and that of the process's own is asked for: what is in flight is the same.
func TestDownstreamAmongMany(t *testing.T) {
	l := newLab(t, watching8080)
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 5})
	address, answer := l.backend(t)
	l.ask(t, address, 5, 3)
	l.stranger(t, address)
	l.faults.more = 20_000
	var walks []sockdiag.Wanted
	l.faults.walked = func(w sockdiag.Wanted) { walks = append(walks, w) }

	read := func() model.Peer {
		l.scanner.ForgetOutgoing() // whatever the time
		return peerOf(t, l.scan(t), server.Addr.Port(), address)
	}
	require.Eventually(t, func() bool { return read().InFlight == 3 }, time.Minute, 10*time.Millisecond)
	got := read()
	require.Equal(t, 5, got.Connections, "not the stranger's")
	require.GreaterOrEqual(t, len(walks), 2)
	require.True(t, walks[0].Info)
	require.True(t, walks[0].Ports.Has(8080))
	require.False(t, walks[1].Info)
	answer()
	require.Eventually(t, func() bool { p := read(); return p.Connections == 5 && p.InFlight == 0 }, time.Minute, 10*time.Millisecond)

	l.stranger(t, server.Addr.String())
	require.Eventually(t, func() bool {
		walks = nil
		read()
		return len(walks) == 1
	}, time.Minute, 10*time.Millisecond, "the process holds no other socket than before")
	require.True(t, walks[0].Info)
	require.Equal(t, 5, read().Connections)
	l.ask(t, address, 1, 1)
	require.Eventually(t, func() bool { p := read(); return p.Connections == 6 && p.InFlight == 1 }, time.Minute, 10*time.Millisecond)
}

// Where nothing waits they are read rarely, and what was read carries its age.
func TestDownstreamAtRestIsReadRarely(t *testing.T) {
	l := newLab(t, watching8080)
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 5})
	address, _ := l.backend(t)
	l.scan(t)
	l.ask(t, address, 1, 1)
	require.Zero(t, peerOf(t, l.scan(t), server.Addr.Port(), address).Connections, "not read again")
	require.Eventually(t, func() bool { // reading descriptors has a pace of its own
		l.scanner.ForgetOutgoing()
		return peerOf(t, l.scan(t), server.Addr.Port(), address).Connections == 1
	}, time.Minute, 10*time.Millisecond)
}

// A port on which nobody answers: its packets are dropped before they arrive.
func TestDownstreamThatHangs(t *testing.T) {
	l := newLab(t, watching8080)
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 5})
	full := l.listen(t, nettest.ListenOptions{Backlog: 0})
	l.Do(func() { nettest.Queue(t, full.Addr, 1) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Do(func() {
			d := net.Dialer{Timeout: 2 * time.Minute}
			if c, err := d.DialContext(t.Context(), "tcp", full.Addr.String()); err == nil {
				_ = c.Close()
			}
		})
	}()
	require.Eventually(t, func() bool {
		l.scanner.ForgetOutgoing()
		return peerOf(t, l.scan(t), server.Addr.Port(), full.Addr.String()).Connecting == 1
	}, time.Minute, 10*time.Millisecond)
	full.Close()
	<-done
}

// A process's connections to its own listener are its clients' ends, and nothing
// that its threads wait for.
func TestDownstreamIsNotItself(t *testing.T) {
	l := newLab(t, watching8080)
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 5})
	address, _ := l.backend(t)
	l.ask(t, server.Addr.String(), 2, 2)
	l.ask(t, address, 1, 1)
	require.Eventually(t, func() bool {
		l.scanner.ForgetOutgoing()
		return peerOf(t, l.scan(t), server.Addr.Port(), address).InFlight == 1
	}, time.Minute, 10*time.Millisecond)
	require.Zero(t, peerOf(t, l.scan(t), server.Addr.Port(), server.Addr.String()).Connections)
}
