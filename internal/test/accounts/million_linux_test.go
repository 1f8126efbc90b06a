package accounts

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	waveClients = 100 // that come at once
	waveRoom    = 90  // of the accept queue
	deadEvery   = 50  // waves, until clients come that are let in after they have left
	deadClients = 10
	deadRoom    = 16
	mostSockets = 3 * time.Minute // until what is open is settled
)

// shortClients is how many TestMillion starts; TCPDIAG_SHORT_CLIENTS changes it.
func shortClients(t *testing.T) int {
	if v := os.Getenv("TCPDIAG_SHORT_CLIENTS"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(t, err)
		return n
	}
	return 20_000
}

// waves are clients of a server that takes what is in its queue when all have come.
type waves struct {
	t               *testing.T
	server, crowdNS *nettest.NS
	to, dead        netip.AddrPort // dead: where a client's socket is made by its data
	listener        int
	deadListener    int
	opened          func() uint64
	open            []int // of the clients
	polled          []unix.PollFd

	came, gaveUp, answered, left, late uint64 // by the clients' own account
}

// TestMillion: clients come in waves that are larger than the queue, most with a request, some without, some that
// are gone before the server takes them; now and then some whose data the kernel drops, and that it lets in when they
// have long left. Each socket that the kernel made (PassiveOpens) is of a client that was let in, in time or late:
// the same number in the end, and never more.
func TestMillion(t *testing.T) {
	nettest.Root(t)
	n := shortClients(t)
	w := &waves{t: t, server: nettest.Namespace(t), crowdNS: nettest.Namespace(t)}
	addr, _ := nettest.Veth(t, w.server, w.crowdNS)
	w.server.Sysctl(t, "net.ipv4.tcp_synack_retries", "1")
	w.crowdNS.Sysctl(t, "net.ipv4.tcp_tw_reuse", "1")
	w.crowdNS.Sysctl(t, "net.ipv4.tcp_orphan_retries", "3")
	w.listen(addr)
	w.opened = passiveOpens(t, w.server)
	tap := openTap(t, w.server, nil, w.to.Port(), w.dead.Port())
	before := w.opened()
	began := time.Now()
	w.crowdNS.Do(func() {
		for i := 0; w.came < uint64(n); i++ {
			w.wave()
			if i%deadEvery == deadEvery-1 {
				w.leaveTooSoon()
			}
			in, _, lost := sockets(t, tap)
			require.Zero(t, lost)
			require.LessOrEqual(t, in, w.opened()-before, "let in, of the sockets that the kernel made")
		}
	})
	took := time.Since(began)
	in, e, lost := sockets(t, tap)
	for until := time.Now().Add(mostSockets); time.Now().Before(until) && e.Open()+e.Inside+e.Left > 0; {
		time.Sleep(100 * time.Millisecond)
		in, e, lost = sockets(t, tap)
	}
	made := w.opened() - before
	t.Logf("%d clients in %v: %d gave up, %d answered, %d left, %d let in late; %d sockets; tap %v, let in %d, late %d, answers %+v, lost %d",
		w.came, took, w.gaveUp, w.answered, w.left, w.late, made, named(&e), e.LetIn, e.LetInLate, e.Answers, lost)
	require.Zero(t, lost)
	require.Equal(t, w.came-w.gaveUp, made, "by the clients' own account")
	require.Equal(t, made, in, "let in, and sockets that the kernel made")
	require.InDelta(t, w.late, e.LetInLate, max(3, float64(w.came)/1000), "late: or it left when it was let in")
	require.Equal(t, w.gaveUp, e.Clients[outcome.GaveUp])
	require.Zero(t, e.Clients[outcome.Undecided])
	nettest.Feature("second conservation", "%d clients, %d gave up: let in %d, %d of them after they had left; PassiveOpens %d", w.came, w.gaveUp, in, e.LetInLate, made)
}

// sockets sums what the tap says of all ports.
func sockets(t *testing.T, tap clients.Tap) (in uint64, sum outcome.Endpoint, lost uint64) {
	r, err := tap.Report()
	require.NoError(t, err)
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		for o, n := range e.Clients {
			sum.Clients[o] += n
		}
		sum.LetIn, sum.LetInLate = sum.LetIn+e.LetIn, sum.LetInLate+e.LetInLate
		sum.Waiting, sum.Settling, sum.Stalling, sum.Unreached = sum.Waiting+e.Waiting, sum.Settling+e.Settling, sum.Stalling+e.Stalling, sum.Unreached+e.Unreached
		sum.Inside, sum.Left = sum.Inside+e.Inside, sum.Left+e.Left
		sum.Answers.Answered += e.Answers.Answered
		sum.Answers.Unanswered += e.Answers.Unanswered
		sum.Answers.Checks += e.Answers.Checks
		sum.Answers.Unknown += e.Answers.Unknown
	}
	return sum.LetIn + sum.LetInLate, sum, r.Lost
}

// listen makes the two listeners.
func (w *waves) listen(addr netip.Addr) {
	w.server.Do(func() {
		l := nettest.Listen(w.t, nettest.ListenOptions{Address: netip.AddrPortFrom(addr, nextPort()).String(), Backlog: waveRoom - 1})
		d := nettest.Listen(w.t, nettest.ListenOptions{Address: netip.AddrPortFrom(addr, nextPort()).String(), Backlog: deadRoom - 1, DeferAccept: 30})
		w.to, w.dead = l.Addr, d.Addr
		w.listener, w.deadListener = w.descriptor(l), w.descriptor(d)
	})
}

func (w *waves) descriptor(l *nettest.Listener) int {
	file := l.File(w.t)
	w.t.Cleanup(func() { _ = file.Close() })
	fd := int(file.Fd())
	require.NoError(w.t, unix.SetNonblock(fd, true))
	return fd
}

// connect lets n clients come, and waits until as many of them are connected as there is room for.
func (w *waves) connect(to netip.AddrPort, n, room int) {
	w.open, w.polled = w.open[:0], w.polled[:0]
	sa := &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	for range n {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		require.NoError(w.t, err)
		if err := unix.Connect(fd, sa); err != nil && !errors.Is(err, unix.EINPROGRESS) {
			require.NoError(w.t, err)
		}
		w.open = append(w.open, fd)
		w.polled = append(w.polled, unix.PollFd{Fd: int32(fd), Events: unix.POLLOUT})
	}
	w.came += uint64(n)
	for until := time.Now().Add(900 * time.Millisecond); time.Now().Before(until); { // a SYN is repeated after a second
		ready := 0
		_, err := unix.Poll(w.polled, 10)
		if !errors.Is(err, unix.EINTR) {
			require.NoError(w.t, err)
		}
		for i := range w.polled {
			if w.polled[i].Revents&unix.POLLOUT != 0 {
				ready++
			}
		}
		if ready >= room {
			return
		}
	}
}

// connected reports whether a client of the latest connect is; who is not gives up.
func (w *waves) connected(i int) bool {
	if w.polled[i].Revents&unix.POLLOUT != 0 {
		return true
	}
	w.gaveUp++
	w.closes(i)
	return false
}

func (w *waves) closes(i int) {
	if w.open[i] >= 0 {
		_ = unix.Close(w.open[i])
		w.open[i] = -1
	}
}

var (
	request  = []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	response = []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
)

// wave is one: of each ten clients eight send a request and take their answer, one sends nothing and leaves, one leaves
// without its answer. None ends by a RST: whether a client that does was let in no packet proves while others are dropped.
func (w *waves) wave() {
	w.connect(w.to, waveClients, waveRoom)
	for i := range w.open {
		if !w.connected(i) {
			continue
		}
		switch i % 10 {
		case 7:
			w.left++
			w.closes(i)
		case 8:
			w.left++
			w.write(w.open[i], request)
			w.closes(i)
		default:
			w.answered++
			w.write(w.open[i], request)
		}
	}
	w.serve(w.listener)
	for i, fd := range w.open {
		if fd < 0 {
			continue
		}
		var b [len("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]byte
		for until := time.Now().Add(10 * time.Second); ; {
			if n, _ := unix.Read(fd, b[:]); n > 0 {
				break
			}
			require.True(w.t, time.Now().Before(until), "it is not answered")
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		}
		w.closes(i)
	}
}

func (w *waves) write(fd int, b []byte) {
	if _, err := unix.Write(fd, b); !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
		require.NoError(w.t, err)
	}
}

// serve takes all that is in a queue, answers who has sent something, and ends the connection. A request, or the client's
// end, may still be on its way.
func (w *waves) serve(listener int) {
	var b [256]byte
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
			continue
		}
		if errors.Is(err, unix.EAGAIN) {
			return
		}
		require.NoError(w.t, err)
		n, err := unix.Read(fd, b[:])
		for until := time.Now().Add(10 * time.Second); errors.Is(err, unix.EAGAIN) && time.Now().Before(until); n, err = unix.Read(fd, b[:]) {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		}
		if n > 0 {
			_, _ = unix.Write(fd, response)
		}
		_ = unix.Close(fd)
	}
}

// leaveTooSoon: clients who believe that they are connected, as the kernel leaves their ACK out (TCP_DEFER_ACCEPT) and
// drops their data, at a queue that others have filled. They leave, the queue is emptied, and what their kernel repeats
// lets them in.
func (w *waves) leaveTooSoon() {
	opened := w.opened()
	made := func() uint64 { return w.opened() - opened }
	w.connect(w.dead, deadClients, deadClients)
	dead := slices.Clone(w.open)
	for range deadRoom {
		w.connect(w.dead, 1, 1)
		w.write(w.open[0], request)
		w.left++
		w.closes(0)
	}
	for until := time.Now().Add(500 * time.Millisecond); made() < deadRoom && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	require.EqualValues(w.t, deadRoom, made(), "those who fill the queue are let in")
	for _, fd := range dead {
		w.write(fd, request)
	}
	time.Sleep(100 * time.Millisecond) // or they might have shut down their side alone
	for _, fd := range dead {
		_ = unix.Close(fd)
	}
	w.late += deadClients
	time.Sleep(20 * time.Millisecond)
	require.EqualValues(w.t, deadRoom, made(), "and no others")
	for until := time.Now().Add(20 * time.Second); made() < deadRoom+deadClients; time.Sleep(10 * time.Millisecond) {
		w.serve(w.deadListener)
		require.True(w.t, time.Now().Before(until), "%d of %d are let in", made(), deadRoom+deadClients)
	}
	time.Sleep(20 * time.Millisecond)
	w.serve(w.deadListener)
}
