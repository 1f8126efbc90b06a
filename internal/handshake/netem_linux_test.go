package handshake

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	oneWay = 25 * time.Millisecond
	lossy  = 5 // percent of the packets
)

// Across a network that delays packets and loses some: how many got in, gave up
// and were refused is counted exactly, and so is each SYN that was dropped here.
// Whether a client was delayed shows if the answers were lost; of a SYN that was
// lost before it came here nothing is known.
func TestNetem(t *testing.T) {
	for name, lose := range map[string]struct{ there, back float32 }{
		"delay": {}, "answers are lost": {back: lossy}, "packets are lost": {lossy, lossy},
	} {
		t.Run(name, func(t *testing.T) {
			w := impaired(t, lose.there, lose.back)
			full := w.listen(t, 0)
			w.server.Do(func() { nettest.Queue(t, full.Addr, 1) })
			open, closed := w.listen(t, 4000), netip.AddrPortFrom(w.addr, 1)
			tap := w.tap(t, open.Addr.Port(), full.Addr.Port(), closed.Port())
			go greetAll(open.File(t))
			drops := w.listenDrops(t)

			want := make(map[netip.AddrPort][NumOutcomes]uint64)
			clients := impairedClients(t)
			for _, n := range crowds(clients / 3) {
				for to, syns := range map[netip.AddrPort]int{open.Addr: manySYNs, full.Addr: someSYNs, closed: manySYNs} {
					counts := want[to]
					for o, n := range w.crowd(t, tap, to, n, patience(syns)) {
						counts[o] += n
					}
					want[to] = counts
				}
			}
			got, unanswered := make(map[netip.AddrPort][NumOutcomes]uint64), uint64(0)
			for to, counts := range want {
				e := decided(t, tap, to, sumOf(counts))
				got[to] = e.Clients
				if to == full.Addr {
					unanswered = e.Unanswered
				}
			}
			t.Logf("by their own count %v, here %v, %d SYNs dropped", want, got, unanswered)
			require.Equal(t, want[full.Addr], got[full.Addr])
			require.Equal(t, want[closed], got[closed])
			require.Equal(t, w.listenDrops(t)-drops, unanswered)
			in := got[open.Addr]
			require.Equal(t, sumOf(want[open.Addr]), in[Connected]+in[Delayed], "%v", in)
			if lose.there == 0 {
				require.LessOrEqual(t, want[open.Addr][Delayed], in[Delayed])
			}
			if lose.back == 0 && nettest.InGuest() { // elsewhere the machine itself may be late
				require.Equal(t, want[open.Addr], in)
			}
			nettest.Feature(fmt.Sprintf("tap: %d clients, round trip %v, %s", clients, 2*oneWay, name),
				"%d in, %d gave up, %d refused, as they count themselves; each of %d dropped SYNs is a client's",
				in[Connected]+in[Delayed], got[full.Addr][GaveUp], got[closed][Refused], unanswered)
		})
	}
}

// crowds are the numbers of clients that come together: an emulated machine has room
// for some hundred at once.
func crowds(clients int) (all []int) {
	most := max(50, clients/10)
	for ; clients > 0; clients -= most {
		all = append(all, min(clients, most))
	}
	return all
}

// A client sends its SYN so often before it gives up. That the network loses all
// of them, and nothing is known here of the client, happens to one in three million
// of those that send some; that it loses each SYN or its answer, to one in ten
// million of those that send many.
const (
	someSYNs = 5
	manySYNs = 7
)

// patience is a client's that sends a number of SYNs: tcp_syn_linear_timeouts (6.5)
// of them follow each other after a second.
func patience(syns int) time.Duration {
	linear := 0
	if _, err := os.Stat("/proc/sys/net/ipv4/tcp_syn_linear_timeouts"); err == nil {
		linear = 4
	}
	wait := 500 * time.Millisecond
	for i := range syns - 1 {
		wait += time.Second << max(0, i-linear)
	}
	return wait
}

// impaired is a server, its clients, and a router between them that loses some
// of the packets there and back, in percent, and delays all.
func impaired(t *testing.T, there, back float32) world {
	server, router, clients := nettest.Namespace(t), nettest.Namespace(t), nettest.Namespace(t)
	addr, near := nettest.Veth(t, server, router)
	far, client := nettest.Veth(t, router, clients)
	router.Sysctl(t, "net.ipv4.ip_forward", "1")
	route(t, server, client, near)
	route(t, clients, addr, far)
	impair(t, router, "veth0", there)
	impair(t, router, "veth1", back)
	return world{server, clients, addr}
}

func route(t *testing.T, ns *nettest.NS, to, via netip.Addr) {
	ns.Do(func() {
		dst := &net.IPNet{IP: to.AsSlice(), Mask: net.CIDRMask(32, 32)}
		require.NoError(t, netlink.RouteAdd(&netlink.Route{Dst: dst, Gw: via.AsSlice()}))
	})
}

// greetAll takes connections, and says something to each.
func greetAll(listener *os.File) {
	defer listener.Close()
	for {
		fd, _, err := unix.Accept4(int(listener.Fd()), unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		defer unix.Close(fd)
		_, _ = unix.Write(fd, []byte("x"))
	}
}

// impairedClients is how many clients TestNetem starts; TCPDIAG_IMPAIRED changes it.
func impairedClients(t *testing.T) int {
	if v := os.Getenv("TCPDIAG_IMPAIRED"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(t, err)
		return n
	}
	return 300
}

// impair lets a device's packets leave late, and loses some.
func impair(t *testing.T, ns *nettest.NS, device string, percent float32) {
	ns.Do(func() {
		link, err := netlink.LinkByName(device)
		require.NoError(t, err)
		at := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
		err = netlink.QdiscAdd(netlink.NewNetem(at, netlink.NetemQdiscAttrs{
			Latency: uint32(oneWay.Microseconds()), Loss: percent, Limit: 10_000,
		}))
		if errors.Is(err, unix.ENOENT) {
			t.Skip("this kernel has no netem (sch_netem)")
		}
		require.NoError(t, err)
	})
}

// crowd starts n clients at once, and returns the outcome that each reports.
func (w world) crowd(t *testing.T, tap *Tap, to netip.AddrPort, n int, patience time.Duration) (counts [NumOutcomes]uint64) {
	start := time.Now()
	waiting := newEvents(t, unix.EPOLLOUT, w.connect(t, to, n))
	var inside []*client
	for len(waiting.of) > 0 && time.Since(start) < patience {
		for _, c := range waiting.next(t) {
			switch in, err := c.state(t); {
			case in:
				counts[c.letIn(t)]++
				_, err := unix.Write(c.fd, []byte("x")) // says again what its ACK said
				require.NoError(t, err)
				inside = append(inside, c)
			case errors.Is(err, unix.ECONNREFUSED):
				counts[Refused]++
				c.close()
			default:
				require.NoError(t, err)
			}
		}
		_, err := tap.Report() // the ring holds some thousand packets
		require.NoError(t, err)
	}
	for _, c := range waiting.of {
		counts[GaveUp]++
		c.close()
	}
	answered := newEvents(t, unix.EPOLLIN, inside) // by a server that has said something
	for deadline := time.Now().Add(2 * time.Minute); len(answered.of) > 0; {
		require.True(t, time.Now().Before(deadline), "%d clients hear nothing", len(answered.of))
		for _, c := range answered.next(t) {
			_, err := unix.Read(c.fd, make([]byte, 1)) // what is not read would make a RST of the close
			require.NoError(t, err)
			c.close()
		}
	}
	return counts
}

// events are clients that wait for something, each once.
type events struct {
	epoll int
	of    map[int32]*client
}

func newEvents(t *testing.T, wanted uint32, clients []*client) *events {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	e := &events{fd, make(map[int32]*client)}
	for _, c := range clients {
		event := unix.EpollEvent{Events: wanted | unix.EPOLLONESHOT, Fd: int32(c.fd)}
		require.NoError(t, unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, c.fd, &event))
		e.of[event.Fd] = c
	}
	return e
}

// next are those of which it has come, none after a tenth of a second.
func (e *events) next(t *testing.T) (came []*client) {
	var all [100]unix.EpollEvent
	n, err := unix.EpollWait(e.epoll, all[:], 100)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	require.NoError(t, err)
	for _, event := range all[:n] {
		came = append(came, e.of[event.Fd])
		delete(e.of, event.Fd)
	}
	return came
}

// letIn is whether the client had to repeat its SYN.
func (c *client) letIn(t *testing.T) Outcome {
	info, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	require.NoError(t, err)
	if info.Total_retrans > 0 {
		return Delayed
	}
	return Connected
}
