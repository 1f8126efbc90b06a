package handshake

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// BenchmarkTap compares an HTTP server and its clients on the loopback, where
// every packet passes the filter of a tap, with and without one: CPU time a
// request, user and system, of both and of the tap. They take turns, so that
// what else the machine does falls on both.
func BenchmarkTap(b *testing.B) {
	for name, keepAlive := range map[string]bool{"keep-alive": true, "connection per request": false} {
		b.Run(name, func(b *testing.B) {
			ns := nettest.Namespace(b)
			var server *httptest.Server
			ns.Do(func() {
				server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
			})
			defer server.Close()
			tapped := func() time.Duration {
				var tap *Tap
				ns.Do(func() {
					var err error
					tap, err = Open(TapOptions{Ports: []uint16{uint16(server.Listener.Addr().(*net.TCPAddr).Port)}})
					require.NoError(b, err)
				})
				defer tap.Close()
				return cost(b, ns, server, keepAlive)
			}
			cost(b, ns, server, keepAlive) // warm
			var with, without []time.Duration
			for b.Loop() { // without, with, with, without: a trend falls on both
				without = append(without, cost(b, ns, server, keepAlive))
				with = append(with, tapped(), tapped())
				without = append(without, cost(b, ns, server, keepAlive))
			}
			b.ReportMetric(float64(calm(with))/float64(calm(without)), "CPU-with/CPU-without")
		})
	}
}

// calm is the lower quartile: what it costs while the machine does little else.
func calm(costs []time.Duration) time.Duration {
	slices.Sort(costs)
	return costs[len(costs)/4]
}

// cost is the CPU time of some hundred requests.
func cost(b *testing.B, ns *nettest.NS, server *httptest.Server, keepAlive bool) time.Duration {
	const n = 200
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: !keepAlive}}
	defer client.CloseIdleConnections()
	var took time.Duration
	ns.Do(func() {
		client.Transport.(*http.Transport).Dial = func(network, addr string) (c net.Conn, err error) { //nolint:staticcheck // no context to hand on
			ns.Do(func() { c, err = net.Dial(network, addr) })
			return c, err
		}
		before := cpu(b)
		for range n {
			resp, err := client.Get(server.URL)
			require.NoError(b, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			require.NoError(b, resp.Body.Close())
		}
		took = cpu(b) - before
	})
	return took
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPacket is what a tap costs each packet of an established connection:
// one byte there and one back, the least that can be made of the loopback, by
// one thread. The fastest of many short turns is reported.
func BenchmarkPacket(b *testing.B) {
	ns := nettest.Namespace(b)
	var ends [2]int
	var to netip.AddrPort
	ns.Do(func() {
		l := nettest.Listen(b, nettest.ListenOptions{Backlog: 1})
		to = l.Addr
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		require.NoError(b, err)
		require.NoError(b, unix.Connect(fd, sockaddrOf(to)))
		file := l.File(b)
		defer file.Close()
		accepted, _, err := unix.Accept4(int(file.Fd()), unix.SOCK_CLOEXEC)
		require.NoError(b, err)
		ends = [2]int{fd, accepted}
		for _, end := range ends {
			require.NoError(b, unix.SetsockoptInt(end, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
		}
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for tapped := range best {
			var tap *Tap
			if tapped == 1 {
				ns.Do(func() {
					var err error
					tap, err = Open(TapOptions{Ports: []uint16{to.Port()}})
					require.NoError(b, err)
				})
			}
			for range 20 {
				best[tapped] = min(best[tapped], pingPong(b, ends))
			}
			if tap != nil {
				require.NoError(b, tap.Close())
			}
		}
	}
	b.ReportMetric(float64(best[0].Nanoseconds()), "ns-without")
	b.ReportMetric(float64(best[1].Nanoseconds()), "ns-with")
}

// pingPong is the CPU time of one byte there and back.
func pingPong(b *testing.B, ends [2]int) time.Duration {
	const n = 200
	one := make([]byte, 1)
	before := threadTime(b)
	for range n {
		for i := range ends {
			if _, err := unix.Write(ends[i], one); err != nil {
				b.Fatal(err)
			}
			if _, err := unix.Read(ends[1-i], one); err != nil {
				b.Fatal(err)
			}
		}
	}
	return (threadTime(b) - before) / n
}

func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	require.NoError(b, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t))
	return time.Duration(t.Nano())
}
