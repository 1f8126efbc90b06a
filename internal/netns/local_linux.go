package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// mostLocal is how many addresses and local routes of a namespace are read, and mostRanges how many of these may be of more
	// than one address each: whether a packet is for one of them is asked for each.
	mostLocal  = 1024
	mostRanges = 64
)

// LocalAddresses are those that packets come to in the network namespace of the calling
// thread: of its devices, and of local routes, by which load balancers' addresses are
// given to machines that no device has (ip route add local, AnyIP). Where they are more than are read, all addresses there are.
func LocalAddresses() ([]netip.Prefix, error) {
	known := make(map[netip.Prefix]bool)
	ranges := 0
	err := eachAddress(func(_ uint32, a netip.Addr) error {
		known[netip.PrefixFrom(a, a.BitLen())] = true
		return enough(len(known) > mostLocal)
	})
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if err != nil {
			break
		}
		err = eachLocalRoute(family, func(p netip.Prefix) error {
			if !p.IsSingleIP() && !known[p] {
				ranges++
			}
			known[p] = true
			return enough(len(known) > mostLocal || ranges > mostRanges)
		})
	}
	switch {
	case errors.Is(err, errMany):
		return []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}, nil
	case err != nil:
		return nil, fmt.Errorf("netns: local addresses: %w", err)
	}
	out := make([]netip.Prefix, 0, len(known))
	for p := range known {
		out = append(out, p)
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return out, nil
}

func enough(yes bool) error {
	if yes {
		return errMany
	}
	return nil
}

// eachAddress calls fn for those that the interfaces have, and with each the interface's index. What a dump that was cut short
// had is called again.
func eachAddress(fn func(device uint32, a netip.Addr) error) (err error) {
	body := make([]byte, unix.SizeofIfAddrmsg)
	for range dumpTries {
		err = dump(unix.RTM_GETADDR, body, false, func(m *syscall.NetlinkMessage) error {
			device, a, ok := addressOf(m)
			if !ok {
				return nil
			}
			return fn(device, a)
		})
		if !errors.Is(err, errInterrupted) {
			break
		}
	}
	return err
}

// addressOf decodes a struct ifaddrmsg: IFA_LOCAL is the own one where IFA_ADDRESS is the other end's.
func addressOf(m *syscall.NetlinkMessage) (device uint32, a netip.Addr, ok bool) {
	if m.Header.Type != unix.RTM_NEWADDR || len(m.Data) < unix.SizeofIfAddrmsg {
		return 0, a, false
	}
	for kind, value := range attributesOf(m.Data[unix.SizeofIfAddrmsg:]) {
		if kind != unix.IFA_LOCAL && (ok || kind != unix.IFA_ADDRESS) {
			continue
		}
		if given, valid := netip.AddrFromSlice(value); valid {
			a, ok = given.Unmap(), true
		}
	}
	return binary.NativeEndian.Uint32(m.Data[4:]), a, ok
}

// eachLocalRoute asks for the local routes of the table of local addresses alone
// (rtnetlink(7)), as a machine may have a million others.
func eachLocalRoute(family byte, fn func(netip.Prefix) error) error {
	// struct rtmsg: the flags are zero.
	body := append([]byte{family, 0, 0, 0, unix.RT_TABLE_LOCAL, 0, 0, unix.RTN_LOCAL}, make([]byte, 4)...)
	err := dump(unix.RTM_GETROUTE, body, true, func(m *syscall.NetlinkMessage) error {
		if p, ok := localRoute(m); ok {
			return fn(p)
		}
		return nil
	})
	if errors.Is(err, errInterrupted) { // what is missing is read again when a client comes to it
		return nil
	}
	return err
}

// localRoute is what a route is to: false if it is no local one.
func localRoute(m *syscall.NetlinkMessage) (netip.Prefix, bool) {
	const bits, kind = 1, 7 // rtm_dst_len, rtm_type
	if m.Header.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg || m.Data[kind] != unix.RTN_LOCAL {
		return netip.Prefix{}, false
	}
	to := netip.IPv6Unspecified() // where all addresses are meant there is none
	if m.Data[0] == unix.AF_INET {
		to = netip.IPv4Unspecified()
	}
	if given, ok := netip.AddrFromSlice(attribute(m.Data[unix.SizeofRtMsg:], unix.RTA_DST)); ok {
		to = given
	}
	p, err := to.Prefix(int(m.Data[bits]))
	return p, err == nil
}

// PacketsReadable reports whether packet sockets may be had in the network namespace of the calling thread (CAP_NET_RAW).
func PacketsReadable() bool {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // of no protocol: it receives nothing
	return err == nil && unix.Close(fd) == nil
}
