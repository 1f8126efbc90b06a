package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// MissingAddresses are those to which no packet is delivered in the network namespace of the calling thread: the
// kernel's route to them is not local, be it by a rule or for a whole network (ip rule, AnyIP), and no interface
// that is up has them: those of a VRF are in a table of its own, and one that is tentative is in none yet.
func MissingAddresses(addrs []netip.Addr) (out []netip.Addr, err error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err == nil {
		out = slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return !routedAway(h, a) })
		h.Close()
	}
	if err == nil && len(out) > 0 {
		out, err = notUp(out)
	}
	if err != nil {
		return nil, fmt.Errorf("netns: addresses: %w", err)
	}
	return out, nil
}

// routedAway: what the kernel sends to an address leaves the namespace, or has no way at all. False where that is not
// known.
func routedAway(h *netlink.Handle, a netip.Addr) bool {
	routes, err := h.RouteGet(a.AsSlice())
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EACCES):
		return true
	case err != nil:
		return false
	}
	return len(routes) > 0 && !slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.Type != unix.RTN_UNICAST })
}

// mostRead is among how many addresses of interfaces they are looked for: where a namespace has more, none is known to be missing.
const mostRead = 4096

// notUp leaves out those that an interface has that is up.
func notUp(addrs []netip.Addr) ([]netip.Addr, error) {
	on := make(map[netip.Addr][]uint32, len(addrs))
	for _, a := range addrs {
		on[a] = nil
	}
	read := 0
	err := eachAddress(func(device uint32, a netip.Addr) error {
		if devices, wanted := on[a]; wanted && !slices.Contains(devices, device) {
			on[a] = append(devices, device)
		}
		read++
		return enough(read > mostRead)
	})
	if err != nil {
		return nil, err
	}
	up := make(map[netip.Addr]bool)
	for a, devices := range on {
		names, err := Devices(devices)
		if err != nil {
			return nil, err
		}
		err = ioctl(func(fd int) {
			for _, name := range names {
				up[a] = up[a] || isUp(fd, name)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(addrs, func(a netip.Addr) bool { return up[a] }), nil
}
