package discovery

import (
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// owned says whether what listens at an address is the process's alone. It runs
// in the process's namespace, after the connection was made and before anything
// is sent.
func (d *door) owned(address netip.AddrPort) error {
	inodes, err := listenersAt(address)
	if err != nil || len(inodes) == 0 {
		return errAnother
	}
	err = d.proc.SocketInodes(d.pid, func(inode uint32) { delete(inodes, inode) })
	if err != nil || len(inodes) > 0 {
		return errAnother
	}
	return nil
}

// listenersAt are the sockets that may take a connection to an address: those
// bound to it, else those bound to all (inet_lhash2_lookup prefers those bound to it).
func listenersAt(address netip.AddrPort) (map[uint32]struct{}, error) {
	conn, err := sockdiag.Dial()
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	bound, wildcard := map[uint32]struct{}{}, map[uint32]struct{}{}
	err = conn.Listeners(func(l *sockdiag.Listener) error {
		at := l.Address()
		switch {
		case at.Port() != address.Port():
		case at.Addr().Unmap() == address.Addr():
			bound[l.Inode] = struct{}{}
		case at.Addr().IsUnspecified():
			wildcard[l.Inode] = struct{}{}
		}
		return nil
	})
	if len(bound) > 0 {
		return bound, err
	}
	return wildcard, err
}
