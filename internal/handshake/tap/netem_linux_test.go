package tap

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	oneWayDelay = 25 * time.Millisecond
	lossy       = 5 // percent of the packets
)

// Across a network that delays packets and loses some: how many got in, gave up
// and were refused is counted exactly, and so is each SYN that was dropped here.
// Whether a client was delayed shows if the answers were lost; of a SYN that was
// lost before it came here nothing is known. Of a client whose answers are lost again and again the kernel repeats
// its SYN-ACK as it does after a dropped ACK: one in thousands is taken to be stalled.
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

			want := make(map[netip.AddrPort][outcome.NumOutcomes]uint64)
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
			got, unanswered := make(map[netip.AddrPort][outcome.NumOutcomes]uint64), uint64(0)
			for to, counts := range want {
				e := allDecided(t, tap, to, sumOf(counts))
				got[to] = e.Clients
				if to == full.Addr {
					unanswered = e.Unanswered
				}
			}
			t.Logf("by their own count %v, here %v, %d SYNs dropped", want, got, unanswered)
			require.Equal(t, want[full.Addr][outcome.GaveUp], got[full.Addr][outcome.GaveUp])
			require.Equal(t, got[full.Addr][outcome.GaveUp], sumOf(got[full.Addr]))
			require.Equal(t, want[closed][outcome.Refused], got[closed][outcome.Refused])
			require.Equal(t, got[closed][outcome.Refused], sumOf(got[closed]))
			require.Equal(t, w.listenDrops(t)-drops, unanswered)
			in := got[open.Addr]
			let, most := want[open.Addr][outcome.Connected]+want[open.Addr][outcome.Delayed], uint64(0)
			if lose.back > 0 {
				most = max(1, let/1000)
			}
			require.Equal(t, want[open.Addr][outcome.GaveUp], in[outcome.GaveUp])
			require.Equal(t, sumOf(want[open.Addr]), sumOf(in))
			require.LessOrEqual(t, in[outcome.Stalled], most)
			require.Equal(t, let, in[outcome.Connected]+in[outcome.Delayed]+in[outcome.Stalled], "%v", in)
			if lose.there == 0 {
				require.LessOrEqual(t, want[open.Addr][outcome.Delayed], in[outcome.Delayed]+most)
			}
			if lose.back == 0 && nettest.InGuest() { // elsewhere the machine itself may be late
				require.Equal(t, want[open.Addr], in)
			}
			nettest.Feature(fmt.Sprintf("tap: %d clients, round trip %v, %s", clients, 2*oneWayDelay, name),
				"%d in%s, %d refused, %d gave up, as they count themselves; each of %d dropped SYNs is a client's",
				let, called(in[outcome.Stalled]), want[closed][outcome.Refused], want[full.Addr][outcome.GaveUp], unanswered)
		})
	}
}

// allDecided waits until the tap has decided n clients of an address or more, and
// none is open.
func allDecided(t *testing.T, tap *Tap, addr netip.AddrPort, n uint64) (found outcome.Endpoint) {
	t.Helper()
	require.Eventually(t, func() bool {
		found = countedAt(t, tap, addr)
		return sumOf(found.Clients) >= n && found.Open() == 0
	}, 3*time.Minute, 50*time.Millisecond, "%d clients: %v", n, &found)
	return found
}

func called(stalled uint64) string {
	if stalled == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of them called stalled)", stalled)
}

// mostAtOnce are as many as an emulated machine has memory for.
const mostAtOnce = 500

// crowds are the numbers of clients that come together: an emulated machine has room
// for some hundred at once.
func crowds(clients int) (all []int) {
	most := min(max(50, clients/10), mostAtOnce)
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
	wait := 500 * time.Millisecond
	for i := range syns - 1 {
		wait += time.Second << max(0, i-linearTimeouts())
	}
	return wait
}

// linearTimeouts is tcp_syn_linear_timeouts, which is there from Linux 6.5 on.
func linearTimeouts() int {
	if _, err := os.Stat("/proc/sys/net/ipv4/tcp_syn_linear_timeouts"); err == nil {
		return 4
	}
	return 0
}

// impaired is a server, its clients, and a router between them that loses some
// of the packets there and back, in percent, and delays all.
func impaired(t *testing.T, there, back float32) world {
	server, router, clients := nettest.Namespace(t), nettest.Namespace(t), nettest.Namespace(t)
	addr, near := nettest.Veth(t, server, router)
	far, client := nettest.Veth(t, router, clients)
	router.Sysctl(t, "net.ipv4.ip_forward", "1")
	for ns, devices := range map[*nettest.NS][]string{server: {"veth0"}, router: {"veth0", "veth1"}, clients: {"veth1"}} {
		for _, device := range devices { // or packets are lost until the next hop's address is known
			ns.Sysctl(t, "net.ipv4.neigh."+device+".unres_qlen_bytes", "33554432")
		}
	}
	route(t, server, client, near)
	route(t, clients, addr, far)
	router.Impair(t, "veth0", oneWayDelay, there)
	router.Impair(t, "veth1", oneWayDelay, back)
	return world{server: server, clients: clients, addr: addr}
}

func route(t *testing.T, ns *nettest.NS, to, via netip.Addr) {
	ns.Do(func() {
		dst := &net.IPNet{IP: to.AsSlice(), Mask: net.CIDRMask(32, 32)}
		require.NoError(t, netlink.RouteAdd(&netlink.Route{Dst: dst, Gw: via.AsSlice()}))
	})
}

// greetAll takes connections, says something to each, and ends it: what it still had
// would answer a client that uses its port again (challenge ACK). It holds those of the
// latest crowds.
func greetAll(listener *os.File) {
	defer listener.Close()
	var held []int
	defer func() { closeFiles(held) }()
	for {
		fd, _, err := unix.Accept4(int(listener.Fd()), unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		_, _ = unix.Write(fd, []byte("x"))
		_ = unix.Shutdown(fd, unix.SHUT_WR)
		if held = append(held, fd); len(held) > 10*mostAtOnce {
			closeFiles(held[:mostAtOnce])
			held = slices.Delete(held, 0, mostAtOnce)
		}
	}
}

func closeFiles(list []int) {
	for _, fd := range list {
		_ = unix.Close(fd)
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
