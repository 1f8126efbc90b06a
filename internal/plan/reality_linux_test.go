package plan

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// attempts is how often reality may be disturbed by what else the machine does:
// the clients of each are held to the plan, and its times where the machine was
// not busy.
const attempts = 5

// linearTimeouts is there from Linux 6.5 on.
const linearTimeouts = "/proc/sys/net/ipv4/tcp_syn_linear_timeouts"

// realCase is a load and what comes of it.
type realCase struct {
	name string
	in   Input
	want Outcomes
	// slack is the share of clients that may fare otherwise; 0: 2 %. How
	// many of a batch get in depends on whether accept() gets a CPU of its
	// own meanwhile: between 344 (never) and 380 (at once) in the case below.
	slack float64
}

const (
	ms = time.Millisecond
	s  = time.Second
)

// TestPlanAgainstTheKernel lets real clients loose on a real listener that
// admits like Tomcat, and compares what they see, and what ListenDrops counts,
// with the plan.
func TestPlanAgainstTheKernel(t *testing.T) {
	againstTheKernel(t, []realCase{
		{
			"A9: three get in", Input{
				Requests: 10, ServiceTime: 500 * ms, Threads: 1, MaxConnections: 1, AcceptCount: 1,
				ClientTimeout: 10 * s, ConnectTimeout: 400 * ms, Syncookies: true,
			}, Outcomes{Served: 3, ConnectTimeout: 7}, 0,
		},
		{
			"A9: the repeated SYNs all get in as one batch", Input{
				Requests: 10, ServiceTime: 500 * ms, Threads: 1, MaxConnections: 1, AcceptCount: 1,
				ClientTimeout: 30 * s, ConnectTimeout: 2 * s, Syncookies: true,
			}, Outcomes{Served: 10}, 0,
		},
		{
			"A9 with exponential retries", Input{
				Requests: 10, ServiceTime: 1800 * ms, Threads: 1, MaxConnections: 1, AcceptCount: 1,
				ClientTimeout: 6 * s, ConnectTimeout: 4 * s, Syncookies: true, SynRetries: SynRetriesExponential,
			}, Outcomes{Served: 3, ReadTimeout: 7}, 0,
		},
		{
			"A9 without syncookies", Input{
				Requests: 10, ServiceTime: 500 * ms, Threads: 1, MaxConnections: 1, AcceptCount: 1,
				ClientTimeout: 30 * s, ConnectTimeout: 3500 * ms,
			}, Outcomes{Served: 9, ConnectTimeout: 1}, 0,
		},
		{
			"C3", Input{
				Requests: 5, ServiceTime: 900 * ms, Threads: 200, MaxConnections: 1, AcceptCount: 1,
				ClientTimeout: 10 * s, ConnectTimeout: 800 * ms, Syncookies: true,
			}, Outcomes{Served: 3, ConnectTimeout: 2}, 0,
		},
		{
			"abort on overflow resets those whose SYN+ACK came", Input{
				Requests: 10, ServiceTime: 600 * ms, Threads: 1, MaxConnections: 1, AcceptCount: 3,
				ClientTimeout: 30 * s, ConnectTimeout: 2 * s, Syncookies: true, AbortOnOverflow: true,
			}, Outcomes{Served: 7, Reset: 3}, 0,
		},
		{
			"A3 scaled", Input{
				Requests: 300, ServiceTime: 400 * ms, Threads: 40, MaxConnections: 820, AcceptCount: 400,
				ClientTimeout: 2600 * ms, ConnectTimeout: 900 * ms, Syncookies: true,
			}, Outcomes{Served: 240, ReadTimeout: 60}, 0,
		},
		{
			"A5 scaled", Input{
				Requests: 1000, ServiceTime: 950 * ms, Threads: 100, MaxConnections: 819, AcceptCount: 10,
				ClientTimeout: 30 * s, ConnectTimeout: 900 * ms, Syncookies: true,
			}, Outcomes{Served: 830, ConnectTimeout: 170}, 0,
		},
		{
			"A8 scaled", Input{
				Requests: 1000, ServiceTime: 500 * ms, Threads: 100, MaxConnections: 819, AcceptCount: 200,
				ClientTimeout: 30 * s, ConnectTimeout: 400 * ms, Syncookies: true,
			}, Outcomes{Served: 1000}, 0,
		},
	})
}

// TestLongPlanAgainstTheKernel: loads of half a minute.
func TestLongPlanAgainstTheKernel(t *testing.T) {
	againstTheKernel(t, []realCase{
		{
			"A9 unscaled", Input{
				Requests: 10, ServiceTime: 5 * s, Threads: 1, MaxConnections: 1, AcceptCount: 1,
				ClientTimeout: 32 * s, ConnectTimeout: 30 * s, Syncookies: true,
			}, Outcomes{Served: 6, ReadTimeout: 4}, 0,
		},
		{
			"a crowded SYN queue forgets old half-open connections", Input{
				Requests: 20, ServiceTime: 5 * s, Threads: 1, MaxConnections: 1, AcceptCount: 9,
				ClientTimeout: 25500 * ms, ConnectTimeout: 20 * s, Syncookies: true,
			}, Outcomes{Served: 5, ReadTimeout: 12, Reset: 3}, 0,
		},
		{
			"A5 scaled, with clients that knock again", Input{
				Requests: 400, ServiceTime: 500 * ms, Threads: 20, MaxConnections: 200, AcceptCount: 20,
				ClientTimeout: 9750 * ms, ConnectTimeout: 5 * s, Syncookies: true,
			}, Outcomes{Served: 344, ReadTimeout: 56}, 0.1,
		},
	})
}

func againstTheKernel(t *testing.T, tests []realCase) {
	nettest.Root(t)
	nettest.Hurry(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(linearTimeouts); err == nil {
				require.Equal(t, tt.want, planOf(t, tt.in).Outcomes)
			} else { // before Linux 6.5 this machine's clients repeat otherwise
				tt.in.SynRetries, tt.in.SmallSynQueue = SynRetriesExponential, smallSynQueue(t)
			}
			var differences []string
			for range attempts {
				r := newReality(t, tt.in).run(t)
				p := planOf(t, r.asMeasured(tt.in))
				t.Logf("plan    %+v, %+v, %v", p.Outcomes, p.Dropped, p.ClientsDone)
				t.Logf("reality %+v, %d drops, %v, service time %v, came within %v", r.outcomes, r.drops, r.done, r.service, r.arrival)
				if differences = r.differences(p, max(tt.slack, 0.02)); len(differences) == 0 {
					return
				}
				t.Log(differences)
			}
			require.Empty(t, differences, "%d times in a row", attempts)
		})
	}
}

// asMeasured is the load as it was: on a busy machine the clients take a while
// to come, and the threads wake up late.
func (r *realOutcome) asMeasured(in Input) Input {
	in.ServiceTime = r.service
	if r.arrival > 50*time.Millisecond {
		in.Rate = float64(in.Requests) / r.arrival.Seconds()
	}
	return in
}

// differences allows for a share of the clients.
func (r *realOutcome) differences(p *Plan, slack float64) []string {
	clients := slack * float64(p.Input.Requests)
	if p.Input.Requests >= 20 {
		clients = max(1, clients)
	}
	differences := compare(
		compared{"served", float64(p.Outcomes.Served), float64(r.outcomes.Served), clients},
		compared{"connect timeouts", float64(p.Outcomes.ConnectTimeout), float64(r.outcomes.ConnectTimeout), clients},
		compared{"read timeouts", float64(p.Outcomes.ReadTimeout), float64(r.outcomes.ReadTimeout), clients},
		compared{"resets", float64(p.Outcomes.Reset), float64(r.outcomes.Reset), clients},
	)
	if r.late(p.Input) {
		return differences
	}
	return append(differences, r.timesDiffer(p, slack)...)
}

// late reports whether the machine was busy: the threads of the server slept for
// longer than they asked to.
func (r *realOutcome) late(in Input) bool { return r.lag > in.ServiceTime/100 }

// timesDiffer allows for 5 % of the time, and for more of the packets: whether
// clients that came together repeat their SYNs as one batch or as two depends on
// the phase of the kernel's tick, and a client that fares otherwise repeats some
// three packets more or less.
func (r *realOutcome) timesDiffer(p *Plan, slack float64) []string {
	l, share := latencyOf(r.served), max(0.05, slack)
	return compare(
		compared{"dropped packets", float64(p.Dropped.SYN + p.Dropped.ACK), float64(r.drops), 3 + max(0.15, 3*slack)*float64(r.drops)},
		compared{"wall time", p.ClientsDone.Seconds(), r.done.Seconds(), share * r.done.Seconds()},
		compared{"median latency", p.Latency.P50.Seconds(), l.P50.Seconds(), share * l.P50.Seconds()},
		compared{"longest latency", p.Latency.Max.Seconds(), l.Max.Seconds(), share * l.Max.Seconds()},
	)
}

type compared struct {
	what             string
	plan, real, most float64
}

func compare(all ...compared) (out []string) {
	for _, d := range all {
		if math.Abs(d.plan-d.real) > d.most {
			out = append(out, fmt.Sprintf("%s: plan %v, reality %v", d.what, d.plan, d.real))
		}
	}
	return out
}

// reality is a server that admits like Tomcat: a latch that is taken before
// accept(), a bare backlog, a pool of threads.
type reality struct {
	in       Input
	ns       *nettest.NS
	listener net.Listener
	latch    chan struct{}
	work     chan net.Conn
	accepted chan struct{} // one for each connection
	requests atomic.Int64  // executed
	busy     atomic.Int64  // time spent on them
}

type realOutcome struct {
	outcomes Outcomes
	served   []time.Duration // latencies
	done     time.Duration
	drops    int
	service  time.Duration // mean time a thread was busy with a request
	lag      time.Duration // how much longer that was than it asked for
	arrival  time.Duration // from the first client to the last
}

func newReality(tb testing.TB, in Input) *reality {
	tb.Helper()
	r := &reality{
		in: in, ns: nettest.Namespace(tb),
		latch: make(chan struct{}, in.MaxConnections),
		work:  make(chan net.Conn, in.Requests),

		accepted: make(chan struct{}, in.Requests),
	}
	flag := func(on bool) string { return map[bool]string{false: "0", true: "1"}[on] }
	r.ns.Sysctl(tb, "net.ipv4.tcp_syncookies", flag(in.Syncookies))
	r.ns.Sysctl(tb, "net.ipv4.tcp_abort_on_overflow", flag(in.AbortOnOverflow))
	if _, err := os.Stat(linearTimeouts); err == nil {
		r.ns.Sysctl(tb, "net.ipv4.tcp_syn_linear_timeouts", map[bool]string{false: "4", true: "0"}[in.SynRetries == SynRetriesExponential])
	}
	r.ns.Do(func() {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(tb, err)
		r.listener = l
	})
	tb.Cleanup(func() { _ = r.listener.Close() })
	control(tb, r.listener.(*net.TCPListener), func(fd int) error { return unix.Listen(fd, in.AcceptCount) })
	go r.accept()
	for range in.Threads {
		go r.serve()
	}
	return r
}

func (r *reality) accept() {
	for {
		r.latch <- struct{}{}
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.accepted <- struct{}{}
		r.work <- c
	}
}

func (r *reality) serve() {
	for c := range r.work {
		start := time.Now()
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			time.Sleep(r.in.ServiceTime)
			_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
		}
		_ = c.Close()
		r.busy.Add(int64(time.Since(start)))
		r.requests.Add(1)
		<-r.latch
	}
}

// run sends the clients and waits until each was answered or gave up.
func (r *reality) run(tb testing.TB) realOutcome {
	tb.Helper()
	before := r.listenDrops(tb)
	addr := r.listener.Addr().(*net.TCPAddr)
	var out realOutcome
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := time.Now()
	r.ns.Do(func() {
		for i := range r.in.Requests {
			c := dial(tb, addr.Port)
			if i < r.in.MaxConnections {
				<-r.accepted // the plan's accept() is instant
			}
			wg.Go(func() {
				seen, at := c.ask(r.in)
				mu.Lock()
				defer mu.Unlock()
				*seen(&out.outcomes)++
				if before := out.outcomes.Served; before > len(out.served) {
					out.served = append(out.served, at)
				}
			})
		}
	})
	out.arrival = time.Since(start)
	wg.Wait()
	out.done = time.Since(start)
	out.service = time.Duration(r.busy.Load() / r.requests.Load())
	out.lag = out.service - r.in.ServiceTime
	out.drops = r.listenDrops(tb) - before
	return out
}

// realClient is a socket whose connect() has begun.
type realClient struct {
	file  *os.File
	start time.Time
}

func dial(tb testing.TB, port int) *realClient {
	tb.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(tb, err)
	c := &realClient{start: time.Now()}
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	require.True(tb, err == nil || errors.Is(err, unix.EINPROGRESS), "%v", err)
	c.file = os.NewFile(uintptr(fd), "client")
	return c
}

type counter func(*Outcomes) *int

func served(o *Outcomes) *int         { return &o.Served }
func connectTimeout(o *Outcomes) *int { return &o.ConnectTimeout }
func readTimeout(o *Outcomes) *int    { return &o.ReadTimeout }
func reset(o *Outcomes) *int          { return &o.Reset }

// ask sends a request and says what the client saw, and when.
func (c *realClient) ask(in Input) (seen counter, at time.Duration) {
	defer func() { _ = c.file.Close() }()
	_ = c.file.SetDeadline(c.start.Add(in.ConnectTimeout))
	seen = connectTimeout
	if err := c.connect(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		seen = reset
	} else if err == nil {
		_ = c.file.SetDeadline(c.start.Add(in.ClientTimeout))
		seen = served
		_, err := fmt.Fprint(c.file, "GET / HTTP/1.1\r\nHost: plan\r\nConnection: close\r\n\r\n")
		if err == nil {
			err = answered(c.file)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			seen = readTimeout
		case err != nil:
			seen = reset
		}
	}
	return seen, time.Since(c.start)
}

// answered reads the whole response.
func answered(r io.Reader) error {
	resp, err := http.ReadResponse(bufio.NewReader(r), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// connect waits until connect() has succeeded or failed.
func (c *realClient) connect() error {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		if code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err != nil || code != 0 {
			failed = fmt.Errorf("connect: %w", errors.Join(err, unix.Errno(code)))
			return true
		}
		_, err := unix.Getpeername(int(fd))
		return err == nil
	})
	return errors.Join(err, failed)
}

func control(tb testing.TB, c syscall.Conn, fn func(fd int) error) {
	tb.Helper()
	raw, err := c.SyscallConn()
	require.NoError(tb, err)
	require.NoError(tb, raw.Control(func(fd uintptr) { require.NoError(tb, fn(int(fd))) }))
}

// listenDrops is TcpExt ListenDrops of the namespace.
func (r *reality) listenDrops(tb testing.TB) (n int) {
	tb.Helper()
	r.ns.Do(func() { n = int(nettest.TCPExt(tb)("ListenDrops")) })
	return n
}
