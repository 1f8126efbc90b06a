package handshake

import (
	"errors"
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

// Across a network that delays packets and loses some: who got in, who gave up
// and who was refused is counted exactly. That a client was delayed shows if the
// answers were lost; of a SYN that was lost before it came here nothing is known.
func TestNetem(t *testing.T) {
	for name, lose := range map[string]struct{ clients, server float32 }{
		"delay": {}, "answers are lost": {server: lossy}, "packets are lost": {lossy, lossy},
	} {
		t.Run(name, func(t *testing.T) {
			w := pair(t)
			impair(t, w.clients, lose.clients)
			impair(t, w.server, lose.server)
			full := w.listen(t, 0)
			w.server.Do(func() { nettest.Queue(t, full.Addr, 1) })
			open, closed := w.listen(t, 4000), netip.AddrPortFrom(w.addr, 1)
			tap := w.tap(t, open.Addr.Port(), full.Addr.Port(), closed.Port())
			go acceptAll(open.File(t))
			drops := w.listenDrops(t)

			got := make(map[netip.AddrPort][NumOutcomes]uint64)
			want := make(map[netip.AddrPort][NumOutcomes]uint64)
			for done := 0; done < impaired(t); done += atOnce {
				for _, to := range []netip.AddrPort{open.Addr, full.Addr, closed} {
					counts := want[to]
					for o, n := range w.crowd(t, to, atOnce/3) {
						counts[o] += n
					}
					want[to] = counts
				}
			}
			unanswered := uint64(0)
			for to, counts := range want {
				e := decided(t, tap, to, sumOf(counts))
				got[to], unanswered = e.Clients, unanswered+e.Unanswered
			}
			t.Logf("by their own count %v, here %v, %d SYNs dropped", want, got, unanswered)
			require.Equal(t, want[full.Addr], got[full.Addr])
			require.Equal(t, want[closed], got[closed])
			require.Equal(t, w.listenDrops(t)-drops, unanswered)
			if lose.clients == 0 {
				require.InDelta(t, want[open.Addr][Delayed], got[open.Addr][Delayed], 1)
			}
		})
	}
}

// impaired is how many clients TestNetem starts; TCPDIAG_IMPAIRED changes it.
func impaired(t *testing.T) int {
	if v := os.Getenv("TCPDIAG_IMPAIRED"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(t, err)
		return n
	}
	return 2 * atOnce
}

// impair lets a namespace's packets leave late, and loses some.
func impair(t *testing.T, ns *nettest.NS, percent float32) {
	ns.Do(func() {
		link, err := netlink.LinkByName("veth0")
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

// crowd starts n clients at once, and returns what each says became of it.
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
				counts[letInAfter(waited)]++
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
	for _, c := range inside { // until the server has ended it
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, 60_000)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		c.close()
	}
	return counts
}

// letInAfter: a SYN or a SYN-ACK is repeated after a second.
func letInAfter(waited time.Duration) Outcome {
	if waited > 900*time.Millisecond {
		return Delayed
	}
	return Connected
}
