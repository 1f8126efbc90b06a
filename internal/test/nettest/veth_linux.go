package nettest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// strangers are addresses that nobody has (RFC 2544). Each end of a Veth routes
// them to the other end, which does not forward: answers to them are dropped
// without an ICMP error, which would end a half-open connection.
const strangers = "198.18.0.0/15"

// Veth joins two namespaces by a pair of devices and returns the address of
// each: 10.99.N.1 in a, 10.99.N.2 in b.
func Veth(tb testing.TB, a, b *NS) (addrA, addrB netip.Addr) {
	tb.Helper()
	n := max(a.links, b.links)
	a.links, b.links = n+1, n+1
	addrA, addrB = netip.AddrFrom4([4]byte{10, 99, byte(n), 1}), netip.AddrFrom4([4]byte{10, 99, byte(n), 2})
	name := fmt.Sprintf("veth%d", n)
	a.Do(func() {
		pair := &netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name,
			PeerNamespace: netlink.NsFd(b.file.Fd()),
		}
		require.NoError(tb, netlink.LinkAdd(pair))
	})
	a.address(tb, name, addrA, addrB)
	b.address(tb, name, addrB, addrA)
	return addrA, addrB
}

func (ns *NS) address(tb testing.TB, name string, own, peer netip.Addr) {
	tb.Helper()
	ns.Do(func() {
		link, err := netlink.LinkByName(name)
		require.NoError(tb, err)
		addr, err := netlink.ParseAddr(own.String() + "/24")
		require.NoError(tb, err)
		require.NoError(tb, netlink.AddrAdd(link, addr))
		require.NoError(tb, netlink.LinkSetUp(link))
		_, dst, err := net.ParseCIDR(strangers)
		require.NoError(tb, err)
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Gw: peer.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
		require.NoError(tb, netlink.RouteReplace(route))
	})
}

// VethIPv6 gives the devices of the latest Veth between two namespaces an IPv6
// address each, fd99::N:1 in a and fd99::N:2 in b, usable at once.
func VethIPv6(tb testing.TB, a, b *NS) (addrA, addrB netip.Addr) {
	tb.Helper()
	n := a.links - 1
	name := fmt.Sprintf("veth%d", n)
	addrs := [2]netip.Addr{}
	for i, ns := range []*NS{a, b} {
		addrs[i] = netip.MustParseAddr(fmt.Sprintf("fd99::%d:%d", n, i+1))
		ns.Do(func() {
			link, err := netlink.LinkByName(name)
			require.NoError(tb, err)
			addr, err := netlink.ParseAddr(addrs[i].String() + "/112")
			require.NoError(tb, err)
			addr.Flags = unix.IFA_F_NODAD // no duplicate address detection, which takes a second
			require.NoError(tb, netlink.AddrAdd(link, addr))
		})
	}
	return addrs[0], addrs[1]
}

// Impair lets the packets of a device of a namespace leave late, and loses some.
func (ns *NS) Impair(t testing.TB, device string, delay time.Duration, percent float32) {
	t.Helper()
	ns.Do(func() {
		link, err := netlink.LinkByName(device)
		require.NoError(t, err)
		at := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
		err = netlink.QdiscAdd(netlink.NewNetem(at, netlink.NetemQdiscAttrs{Latency: uint32(delay.Microseconds()), Loss: percent, Limit: 10_000}))
		if errors.Is(err, unix.ENOENT) {
			t.Skip("this kernel has no netem (sch_netem)")
		}
		require.NoError(t, err)
	})
}
