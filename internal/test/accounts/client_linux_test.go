package accounts

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// end is how a client's account ends.
type end int

const (
	open           end = iota
	answered           // it received its answer
	connectTimeout     // connect(2) had not returned in time
	readTimeout        // connected, and no byte came in time
	refused            // ECONNREFUSED
	reset              // ECONNRESET or EPIPE before a byte came
	closed             // the server ended the connection without a byte
	checked            // it connected, and closed without having sent anything
	numEnds
)

func (e end) String() string {
	return [numEnds]string{"open", "answered", "connect timeout", "read timeout", "refused", "reset", "closed", "checked"}[e]
}

// account is what a client knows of itself; times are since the run's start, 0 for never.
type account struct {
	port                          uint16
	began, connected, first, over time.Duration
	gone                          time.Duration // when close(2) had returned, after over
	how                           end
	check                         bool
	unacknowledged                bool // some of what it had sent, when it left
}

func (a *account) String() string {
	return fmt.Sprintf("%d %s, SYN %v, connected %v, first byte %v, over %v", a.port, a.how, a.began, a.connected, a.first, a.over)
}

// patience is how long the clients wait.
type patience struct {
	connect, read time.Duration
	keep          time.Duration // an answered client stays that long
	hold          time.Duration // a check does
	half          bool          // they end their side behind the request (shutdown(2)), so much later
	halfAfter     time.Duration
	resets        bool   // who has no answer resets its connection (SO_LINGER 0), as a proxy does
	says          bool   // who has no answer says so before it closes, as a client of TLS does
	request       string // that of HTTP/1.1 if empty
}

// closeNotify is the record in which a client of TLS 1.2 says that it closes.
var closeNotify = append([]byte{21, 3, 3, 0, 26}, make([]byte, 26)...)

// client is one that runs.
type client struct {
	account
	fd       int
	deadline time.Duration
	half     time.Duration // when it ends its side, 0 if it has
	shut     time.Duration // when it has, 0 for not
}

// crowd runs clients by one epoll instance.
type crowd struct {
	t       testing.TB
	to      netip.AddrPort
	waits   patience
	start   time.Time
	epoll   int
	ports   int // the first of its clients'
	few     int // of them, which are used again; 0 for one for each client
	tried   int
	byFD    map[int]*client
	clients []*client
}

func newCrowd(t testing.TB, to netip.AddrPort, waits patience) *crowd {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(epoll) })
	return &crowd{t: t, to: to, waits: waits, start: time.Now(), epoll: epoll, ports: firstPort, byFD: make(map[int]*client)}
}

// firstPort is the first client's; servers have lower ones.
const firstPort = 33_000

// begin starts a client; check: one that sends nothing. It is called within the clients'
// namespace.
func (c *crowd) begin(check bool) {
	for { // a port whose client has left may still be in use
		k := &client{account: account{began: c.now(), check: check}}
		if err := c.connect(k); !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.EADDRINUSE) {
			c.begun(k, err)
			return
		}
	}
}

// connect takes the next port: one of its own for each client, as the kernel's would come again, or of the few there are.
func (c *crowd) connect(k *client) error {
	family, from := unix.AF_INET, netip.IPv4Unspecified()
	if c.to.Addr().Is6() {
		family, from = unix.AF_INET6, netip.IPv6Unspecified()
	}
	c.tried++
	k.port = uint16(c.ports + c.tried)
	if c.few > 0 {
		k.port = uint16(c.ports + c.tried%c.few)
	}
	var err error
	k.fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(c.t, err)
	if c.few > 0 {
		require.NoError(c.t, unix.SetsockoptInt(k.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	}
	if err = unix.Bind(k.fd, sockaddr(netip.AddrPortFrom(from, k.port))); err == nil {
		err = unix.Connect(k.fd, sockaddr(c.to))
	}
	if errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EADDRINUSE) {
		require.Positive(c.t, c.few)
		_ = unix.Close(k.fd)
	}
	return err
}

// begun takes in what connect(2) said.
func (c *crowd) begun(k *client, err error) {
	k.deadline = k.began + c.waits.connect
	c.clients = append(c.clients, k)
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		c.failed(k, err)
		return
	}
	c.byFD[k.fd] = k
	require.NoError(c.t, unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, k.fd, &unix.EpollEvent{Fd: int32(k.fd), Events: unix.EPOLLOUT | unix.EPOLLIN}))
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

func (c *crowd) now() time.Duration { return time.Since(c.start) }

func (c *crowd) over(k *client, how end) {
	if info, err := unix.GetsockoptTCPInfo(k.fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
		k.unacknowledged = k.connected > 0 && info.Unacked > 0
	}
	if c.waits.says && how == readTimeout {
		_, _ = unix.Write(k.fd, closeNotify)
	}
	if c.waits.resets && how == readTimeout {
		_ = unix.SetsockoptLinger(k.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	k.over, k.how = c.now(), how
	delete(c.byFD, k.fd)
	_ = unix.Close(k.fd)
	k.gone = c.now()
}

func (c *crowd) failed(k *client, err error) {
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		c.over(k, refused)
	case errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		c.over(k, reset)
	default:
		require.NoError(c.t, err)
	}
}

// step takes in what happens within some time, and reports whether clients are left.
func (c *crowd) step(most time.Duration) bool {
	var events [256]unix.EpollEvent
	n, err := unix.EpollWait(c.epoll, events[:], int(most.Milliseconds()))
	if !errors.Is(err, unix.EINTR) {
		require.NoError(c.t, err)
	}
	for _, e := range events[:max(n, 0)] {
		if k := c.byFD[int(e.Fd)]; k != nil {
			c.event(k, e.Events)
		}
	}
	for _, k := range c.byFD {
		if k.half > 0 && c.now() >= k.half {
			k.half = 0
			c.shut(k)
		}
		if c.now() >= k.deadline {
			c.timeout(k)
		}
	}
	return len(c.byFD) > 0
}

func (c *crowd) timeout(k *client) {
	switch {
	case k.connected == 0 && c.connects(k): // in the last moment
	case k.connected == 0 && c.byFD[k.fd] != k: // it was refused or reset
	case k.connected == 0:
		c.over(k, connectTimeout)
	case k.first > 0:
		c.over(k, answered)
	case k.check:
		c.over(k, checked)
	default:
		if c.receive(k); c.byFD[k.fd] == k && k.first == 0 { // what came in the last moment counts
			c.over(k, readTimeout)
		}
	}
}

func (c *crowd) event(k *client, events uint32) {
	if k.connected == 0 && !c.connects(k) {
		return
	}
	if events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.receive(k)
	}
}

func (c *crowd) connects(k *client) bool {
	errno, err := unix.GetsockoptInt(k.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	require.NoError(c.t, err)
	if errno != 0 {
		c.failed(k, unix.Errno(errno))
		return false
	}
	if _, err := unix.Getpeername(k.fd); err != nil {
		return false // it is not yet
	}
	k.connected = c.now()
	k.deadline = k.connected + c.waits.read
	require.NoError(c.t, unix.EpollCtl(c.epoll, unix.EPOLL_CTL_MOD, k.fd, &unix.EpollEvent{Fd: int32(k.fd), Events: unix.EPOLLIN}))
	if k.check {
		k.deadline = k.connected + c.waits.hold
		return true
	}
	connection := "close"
	if c.waits.keep > 0 {
		connection = "keep-alive"
	}
	request := cmp.Or(c.waits.request, "GET / HTTP/1.1\r\nHost: x\r\nConnection: "+connection+"\r\n\r\n")
	if _, err := unix.Write(k.fd, []byte(request)); err != nil {
		c.failed(k, err)
		return false
	}
	switch {
	case c.waits.halfAfter > 0:
		k.half = c.now() + c.waits.halfAfter
	case c.waits.half:
		c.shut(k)
	}
	return true
}

// shut has a client end its side.
func (c *crowd) shut(k *client) {
	_ = unix.Shutdown(k.fd, unix.SHUT_WR)
	k.shut = c.now()
}

func (c *crowd) receive(k *client) {
	var b [4096]byte
	n, err := unix.Read(k.fd, b[:])
	switch {
	case errors.Is(err, unix.EAGAIN):
	case err != nil && k.first > 0:
		c.over(k, answered)
	case err != nil:
		c.failed(k, err)
	case n > 0:
		if k.first == 0 {
			k.first = c.now()
			k.deadline = k.first + max(c.waits.keep, time.Second)
		}
	case k.first > 0:
		c.over(k, answered)
	case k.check:
		c.over(k, checked)
	default:
		c.over(k, closed)
	}
}
