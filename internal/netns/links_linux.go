package netns

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// dumpTries bounds how often a dump that was cut short (NLM_F_DUMP_INTR) is made again.
const dumpTries = 3

// Devices are the names of the interfaces of the network namespace of the calling thread,
// by index.
func Devices() (map[uint32]string, error) {
	var links []netlink.Link
	if err := asked(func(h *netlink.Handle) (err error) {
		links, err = h.LinkList()
		return err
	}); err != nil {
		return nil, fmt.Errorf("netns: interfaces: %w", err)
	}
	out := make(map[uint32]string, len(links))
	for _, l := range links {
		out[uint32(l.Attrs().Index)] = l.Attrs().Name
	}
	return out, nil
}

// deviceAddresses are those that the interfaces have.
func deviceAddresses() (out []netip.Prefix, err error) {
	var list []netlink.Addr
	if err := asked(func(h *netlink.Handle) (err error) {
		list, err = h.AddrList(nil, netlink.FAMILY_ALL)
		return err
	}); err != nil {
		return nil, fmt.Errorf("netns: addresses: %w", err)
	}
	for _, a := range list {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			ip = ip.Unmap()
			out = append(out, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	return out, nil
}

// asked runs fn with a handle of the calling thread's namespace.
func asked(fn func(*netlink.Handle) error) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	for range dumpTries {
		if err = fn(h); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return err
		}
	}
	return err
}
