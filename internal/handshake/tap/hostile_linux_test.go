package tap

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// pair is a server and its clients, joined by a veth.
func pair(t *testing.T) world {
	server, clients := nettest.Namespace(t), nettest.Namespace(t)
	addr, _ := nettest.Veth(t, server, clients)
	return world{server: server, clients: clients, addr: addr}
}

// inject sends raw IPv4 packets from the clients' namespace. The kernel fills
// in the IP header's length and checksum (raw(7)).
func (w world) inject(t *testing.T, n int, build func(i int) []byte) {
	w.clients.Do(func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		require.NoError(t, err)
		defer func() { _ = unix.Close(fd) }()
		to := &unix.SockaddrInet4{Addr: w.addr.As4()}
		for i := range n {
			require.NoError(t, unix.Sendto(fd, build(i), 0, to))
		}
	})
}

// stranger is one of the 131,072 addresses that the server's namespace routes to
// the clients', where nobody has them.
func stranger(i int) netip.AddrPort {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], 198<<24|18<<16|uint32(i)&0x1ffff)
	return netip.AddrPortFrom(netip.AddrFrom4(ip), uint16(1024+i>>17))
}

// With SYN cookies for everybody real clients are connected, once their other
// segments are observed; until then nothing is claimed.
func TestSynCookies(t *testing.T) {
	twoWorlds(t, func(t *testing.T, w world) {
		w.server.Sysctl(t, "net.ipv4.tcp_syncookies", "2")
		l := w.listen(t, 200)
		tap := w.tap(t, l.Addr.Port())
		settled(t, w.connect(t, l.Addr, 20))
		require.Eventually(t, func() bool {
			_, err := tap.Report()
			require.NoError(t, err)
			tap.mu.Lock()
			defer tap.mu.Unlock()
			return tap.reading.More
		}, time.Minute, 10*time.Millisecond)
		settled(t, w.connect(t, l.Addr, 30))
		e := decided(t, tap, l.Addr, 50)
		require.GreaterOrEqual(t, e.Clients[outcome.Connected], uint64(30))
		require.EqualValues(t, 50, e.Clients[outcome.Connected]+e.Clients[outcome.HalfOpen], "%v", e.Clients)
	})
}

// What the kernel's TCP throws away is counted by nobody.
func TestHostilePackets(t *testing.T) {
	w := pair(t)
	l := w.listen(t, 128)
	tap := w.tap(t, l.Addr.Port())
	break4 := func(at int, to byte) func(i int) []byte {
		return func(i int) []byte {
			p := nettest.TCP4(stranger(i), l.Addr, packet.FlagSYN, uint32(i), 0)
			p[at] = to
			if at != 36 {
				nettest.Seal4(p)
			}
			return p
		}
	}
	attacks := []func(i int) []byte{
		// The TCP checksum; a TCP header that is too short, and too long.
		break4(36, 0xaa), break4(32, 4<<4), break4(32, 15<<4),
		// Flags that contradict one another, and none.
		break4(33, packet.FlagSYN|packet.FlagFIN), break4(33, packet.FlagSYN|packet.FlagRST), break4(33, 0),
		// The first fragment, and a later one.
		break4(6, 0x20), break4(7, 0x10),
		// A reset for nobody, with and without an ACK; an answer that nobody asked for.
		break4(33, packet.FlagRST), break4(33, packet.FlagRST|packet.FlagACK), break4(33, packet.FlagSYN|packet.FlagACK),
		// From 127.18.x.x, and from multicast.
		break4(12, 127), break4(12, 224),
	}
	for _, attack := range attacks {
		w.inject(t, 200, attack)
	}
	settled(t, w.connect(t, l.Addr, 3))
	e := decided(t, tap, l.Addr, 3)
	require.EqualValues(t, 3, e.Clients[outcome.Connected], "%v", e.Clients)
	r, err := tap.Report()
	require.NoError(t, err)
	require.Len(t, r.Endpoints, 1)
	require.NotZero(t, r.Ignored)
}

// addLink is false where the kernel has no such devices.
func addLink(t *testing.T, link netlink.Link) bool {
	err := netlink.LinkAdd(link)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return false
	}
	require.NoError(t, err)
	return true
}

// A packet passes several devices and is one packet.
func TestStackedDevices(t *testing.T) {
	const name = "veth0"
	address := func(ns *nettest.NS, link netlink.Link, ip string) netip.Addr {
		ns.Do(func() {
			addr, err := netlink.ParseAddr(ip + "/24")
			require.NoError(t, err)
			require.NoError(t, netlink.AddrAdd(link, addr))
			require.NoError(t, netlink.LinkSetUp(link))
		})
		return netip.MustParseAddr(ip)
	}
	vlan := func(t *testing.T, ns *nettest.NS, ip string) (addr netip.Addr) {
		var link netlink.Link
		var has bool
		ns.Do(func() {
			parent, err := netlink.LinkByName(name)
			require.NoError(t, err)
			link = &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "vlan7", ParentIndex: parent.Attrs().Index}, VlanId: 7}
			has = addLink(t, link)
		})
		if !has {
			t.Skip("this kernel has no VLANs (8021q)")
		}
		return address(ns, link, ip)
	}
	clients := func(t *testing.T, w world) {
		l := w.listen(t, 5)
		tap := w.tap(t, l.Addr.Port())
		settled(t, w.connect(t, l.Addr, 6))
		w.connect(t, l.Addr, 5)
		require.Eventually(t, func() bool {
			r, err := tap.Report()
			require.NoError(t, err)
			return len(r.Endpoints) == 1 && r.Endpoints[0].Waiting == 5
		}, 60*time.Second, 10*time.Millisecond)
		l.Accept(t, 6)
		e := decided(t, tap, l.Addr, 11)
		require.Equal(t, [outcome.NumOutcomes]uint64{outcome.Connected: 6, outcome.Delayed: 5}, e.Clients)
	}
	t.Run("VLAN", func(t *testing.T) {
		w := pair(t)
		w.addr = vlan(t, w.server, "10.98.0.1")
		vlan(t, w.clients, "10.98.0.2")
		clients(t, w)
	})
	tunnels := map[string]func(own, peer netip.Addr) netlink.Link{
		"IPIP": func(own, peer netip.Addr) netlink.Link {
			return &netlink.Iptun{LinkAttrs: netlink.LinkAttrs{Name: "tunnel"}, Local: own.AsSlice(), Remote: peer.AsSlice(), Ttl: 64}
		},
		"GRE": func(own, peer netip.Addr) netlink.Link {
			return &netlink.Gretun{LinkAttrs: netlink.LinkAttrs{Name: "tunnel"}, Local: own.AsSlice(), Remote: peer.AsSlice(), Ttl: 64}
		},
		"VXLAN": func(own, peer netip.Addr) netlink.Link {
			return &netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: "tunnel"}, VxlanId: 7, Port: 4789, SrcAddr: own.AsSlice(), Group: peer.AsSlice()}
		},
	}
	for kind, make := range tunnels {
		t.Run(kind, func(t *testing.T) {
			w := world{server: nettest.Namespace(t), clients: nettest.Namespace(t)}
			server, client := nettest.Veth(t, w.server, w.clients)
			end := func(ns *nettest.NS, link netlink.Link) (has bool) {
				ns.Do(func() { has = addLink(t, link) })
				return has
			}
			here, there := make(server, client), make(client, server)
			if !end(w.server, here) || !end(w.clients, there) {
				t.Skipf("this kernel has no %s", kind)
			}
			w.addr = address(w.server, here, "10.98.0.1")
			address(w.clients, there, "10.98.0.2")
			clients(t, w)
		})
	}
	t.Run("bridge", func(t *testing.T) {
		w := pair(t)
		var bridge netlink.Link
		var has bool
		w.server.Do(func() {
			port, err := netlink.LinkByName(name)
			require.NoError(t, err)
			addrs, err := netlink.AddrList(port, netlink.FAMILY_V4)
			require.NoError(t, err)
			bridge = &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
			if has = addLink(t, bridge); !has {
				return
			}
			require.NoError(t, netlink.AddrDel(port, &addrs[0]))
			require.NoError(t, netlink.LinkSetMaster(port, bridge))
		})
		if !has {
			t.Skip("this kernel has no bridges")
		}
		address(w.server, bridge, w.addr.String())
		clients(t, w)
	})
}
