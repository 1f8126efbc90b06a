package tap

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
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
					tap, err = Open(Options{Ports: []uint16{uint16(server.Listener.Addr().(*net.TCPAddr).Port)}})
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
					tap, err = Open(Options{Ports: []uint16{to.Port()}})
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

// BenchmarkConnection is the processor time of a connection with one request, of both ends
// and of the tap, without a tap and with one: reading in one direction, as it does while
// no client is in trouble, and in both. They take turns; of the differences in each turn
// the median is reported.
func BenchmarkConnection(b *testing.B) {
	for name, w := range map[string]func() world{
		"veth": func() world {
			w := world{server: nettest.Namespace(b), clients: nettest.Namespace(b)}
			w.addr, _ = nettest.Veth(b, w.server, w.clients)
			return w
		},
		"loopback": func() world {
			ns := nettest.Namespace(b)
			return world{server: ns, clients: ns, addr: netip.MustParseAddr("127.0.0.1")}
		},
	} {
		b.Run(name, func(b *testing.B) { benchmarkConnection(b, w()) })
	}
}

func benchmarkConnection(b *testing.B, w world) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w.server.Sysctl(b, "net.ipv4.tcp_max_tw_buckets", "0")
	w.clients.Sysctl(b, "net.ipv4.tcp_max_tw_buckets", "0")
	var l *nettest.Listener
	w.server.Do(func() {
		l = nettest.Listen(b, nettest.ListenOptions{Address: netip.AddrPortFrom(w.addr, 0).String(), Backlog: 128})
	})
	file := l.File(b)
	defer file.Close()
	without, taps := Options{}, []Options{{Ports: []uint16{l.Addr.Port()}}, {Ports: []uint16{l.Addr.Port()}}}
	oneWay := w
	oneWay.oneWay = true
	taps[0] = oneWay.options(b, taps[0])
	var base []time.Duration
	more := make([][]time.Duration, len(taps))
	w.connections(b, without, file, l.Addr) // warm
	for b.Loop() {
		alone := w.connections(b, without, file, l.Addr)
		base = append(base, alone)
		for i := range taps {
			more[i] = append(more[i], w.connections(b, taps[i], file, l.Addr)-alone)
		}
	}
	b.ReportMetric(float64(median(base)), "ns-without")
	b.ReportMetric(float64(median(more[0])), "ns-one-way")
	b.ReportMetric(float64(median(more[1])), "ns-both-ways")
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// connections is the processor time of one of some hundred, one after the other.
func (w world) connections(b *testing.B, o Options, listener *os.File, to netip.AddrPort) (each time.Duration) {
	const n = 400
	if o.Ports != nil {
		w.server.Do(func() {
			tap, err := Open(o)
			require.NoError(b, err)
			defer tap.Close()
			each = w.timed(b, n, listener, to)
		})
		return each
	}
	return w.timed(b, n, listener, to)
}

func (w world) timed(b *testing.B, n int, listener *os.File, to netip.AddrPort) (each time.Duration) {
	w.clients.Do(func() {
		fd, buf := int(listener.Fd()), make([]byte, 512)
		before := cpu(b)
		for range n {
			c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			require.NoError(b, err)
			require.NoError(b, unix.Connect(c, sockaddrOf(to)))
			s, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
			require.NoError(b, err)
			for _, step := range []func() (int, error){
				func() (int, error) { return unix.Write(c, buf[:100]) },
				func() (int, error) { return unix.Read(s, buf) },
				func() (int, error) { return unix.Write(s, buf[:200]) },
				func() (int, error) { return unix.Read(c, buf) },
			} {
				_, err := step()
				require.NoError(b, err)
			}
			_ = unix.Close(s)
			_, _ = unix.Read(c, buf)
			_ = unix.Close(c)
		}
		each = (cpu(b) - before) / time.Duration(n)
	})
	return each
}
