package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// MissingAddresses are those to which no packet is delivered in the network namespace of the calling thread: the
// kernel's route to them is not local, be it by a rule or for a whole network (ip rule, AnyIP), and no interface
// that is up has them: those of a VRF are in a table of its own, and one that is tentative is in none yet.
func MissingAddresses(addrs []netip.Addr) (out []netip.Addr, err error) {
	err = asked(func(h *netlink.Handle) error {
		out = slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return !routedAway(h, a) })
		if len(out) == 0 {
			return nil
		}
		up, err := addressesUp(h)
		out = slices.DeleteFunc(out, func(a netip.Addr) bool { return slices.Contains(up, a) })
		return err
	})
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

// addressesUp are those of the interfaces that are up.
func addressesUp(h *netlink.Handle) (out []netip.Addr, err error) {
	list, err := h.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	links, err := h.LinkList()
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		ip, ok := netip.AddrFromSlice(a.IP)
		if ok && slices.ContainsFunc(links, func(l netlink.Link) bool {
			return l.Attrs().Index == a.LinkIndex && l.Attrs().Flags&net.FlagUp != 0
		}) {
			out = append(out, ip.Unmap())
		}
	}
	return out, nil
}
