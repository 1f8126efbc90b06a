package accounts

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// impair lets the packets of a namespace's end of a veth leave late, and loses some.
func impair(t testing.TB, ns *nettest.NS, delay time.Duration, percent float32) {
	ns.Do(func() {
		link, err := netlink.LinkByName("veth0")
		require.NoError(t, err)
		at := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
		err = netlink.QdiscAdd(netlink.NewNetem(at, netlink.NetemQdiscAttrs{Latency: uint32(delay.Microseconds()), Loss: percent, Limit: 10_000}))
		if errors.Is(err, unix.ENOENT) {
			t.Skip("this kernel has no netem (sch_netem)")
		}
		require.NoError(t, err)
	})
}

// resolve has each end know the other's hardware address before the clients come: their SYNs
// would wait for it.
func resolve(t testing.TB, from *nettest.NS, to netip.Addr, wait time.Duration) {
	from.Do(func() {
		c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9)))
		require.NoError(t, err)
		defer c.Close()
		for range 3 { // the network may lose some
			_, _ = c.Write([]byte{0})
			time.Sleep(wait)
		}
	})
}
