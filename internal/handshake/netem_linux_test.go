package handshake

import (
	"errors"
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
	oneWay   = 25 * time.Millisecond
	lossy    = 5 // percent of the packets
	atOnce   = 150
	patience = 4500 * time.Millisecond // of a client: at least three SYNs on every kernel
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
			for done := 0; done < impairedClients(t); done += atOnce {
				for _, to := range []netip.AddrPort{open.Addr, full.Addr, closed} {
					counts := want[to]
					for o, n := range w.crowd(t, to, atOnce/3) {
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
		})
	}
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
	return 2 * atOnce
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
func (w world) crowd(t *testing.T, to netip.AddrPort, n int) (counts [NumOutcomes]uint64) {
	start := time.Now()
	waiting := w.connect(t, to, n)
	var inside []*client
	for len(waiting) > 0 {
		waited := time.Since(start)
		var still []*client
		for _, c := range waiting {
			switch in, err := c.state(t); {
			case in:
				counts[c.letIn(t)]++
				_, err := unix.Write(c.fd, []byte("x")) // says again what its ACK said
				require.NoError(t, err)
				inside = append(inside, c)
			case errors.Is(err, unix.ECONNREFUSED):
				counts[Refused]++
				c.close()
			case err != nil:
				require.NoError(t, err)
			case waited > patience:
				counts[GaveUp]++
				c.close()
			default:
				still = append(still, c)
			}
		}
		waiting = still
		time.Sleep(2 * time.Millisecond) // the pace of the clients' own clock
	}
	for _, c := range inside { // until the server has said something
		require.Eventually(t, func() bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, 1000)
			return n == 1
		}, 60*time.Second, time.Millisecond)
		_, err := unix.Read(c.fd, make([]byte, 1)) // what is not read would make a RST of the close
		require.NoError(t, err)
		c.close()
	}
	return counts
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
