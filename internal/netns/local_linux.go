package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// LocalAddresses are those that packets come to in the network namespace of the calling
// thread: of its devices, and of local routes, by which load balancers' addresses are
// given to machines that no device has (ip route add local, AnyIP).
func LocalAddresses() (out []netip.Prefix, err error) {
	if out, err = deviceAddresses(); err != nil {
		return nil, err
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		routes, err := localRoutes(family)
		if err != nil {
			return out, fmt.Errorf("netns: local routes: %w", err)
		}
		for _, p := range routes {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// localRoutes asks for the local routes of the table of local addresses alone
// (rtnetlink(7), NETLINK_GET_STRICT_CHK), as a machine may have a million others. Kernels
// before 4.20 and 5.0 cannot be asked so, and answer with none.
func localRoutes(family byte) ([]netip.Prefix, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1); err != nil {
		return nil, nil
	}
	if err := unix.Sendto(fd, localRoutesRequest(family), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("send", err)
	}
	var out []netip.Prefix
	for b := make([]byte, 1<<15); ; {
		n, _, err := unix.Recvfrom(fd, b, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return out, os.NewSyscallError("receive", err)
		}
		messages, err := syscall.ParseNetlinkMessage(b[:n])
		if err != nil {
			return out, err
		}
		for i := range messages {
			switch messages[i].Header.Type {
			case unix.NLMSG_DONE, unix.NLMSG_ERROR: // without IPv6 there is no such table
				return out, nil
			}
			if p, ok := localRoute(&messages[i]); ok {
				out = append(out, p)
			}
		}
	}
}

// localRoutesRequest is a struct nlmsghdr and a struct rtmsg.
func localRoutesRequest(family byte) []byte {
	ne := binary.NativeEndian
	b := ne.AppendUint32(nil, unix.SizeofNlMsghdr+unix.SizeofRtMsg)
	b = ne.AppendUint16(b, unix.RTM_GETROUTE)
	b = ne.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b = append(b, make([]byte, 8)...) // sequence number, port
	b = append(b, family, 0, 0, 0, unix.RT_TABLE_LOCAL, 0, 0, unix.RTN_LOCAL)
	return ne.AppendUint32(b, 0) // flags
}

// localRoute is what a route is to: false if it is no local one.
func localRoute(m *syscall.NetlinkMessage) (netip.Prefix, bool) {
	const bits, kind = 1, 7 // rtm_dst_len, rtm_type
	if m.Header.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg || m.Data[kind] != unix.RTN_LOCAL {
		return netip.Prefix{}, false
	}
	attrs, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return netip.Prefix{}, false
	}
	to := netip.IPv6Unspecified() // where all addresses are meant there is none
	if m.Data[0] == unix.AF_INET {
		to = netip.IPv4Unspecified()
	}
	for _, a := range attrs {
		if given, ok := netip.AddrFromSlice(a.Value); ok && a.Attr.Type == unix.RTA_DST {
			to = given
		}
	}
	p, err := to.Prefix(int(m.Data[bits]))
	return p, err == nil
}

// PacketsReadable reports whether packet sockets may be had in the network namespace of the calling thread (CAP_NET_RAW).
func PacketsReadable() bool {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // of no protocol: it receives nothing
	return err == nil && unix.Close(fd) == nil
}
