package discovery

import (
	"errors"
	"io/fs"
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/netns"
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
	if err := d.eachSocket(func(inode uint32) bool {
		delete(inodes, inode)
		return len(inodes) > 0
	}); err != nil || len(inodes) > 0 {
		return errAnother
	}
	return nil
}

// eachSocket goes through the process's sockets as long as fn wants more. A server
// opens its listeners before it has connections, so theirs are among the first.
func (d *door) eachSocket(fn func(inode uint32) bool) error {
	_, err := d.proc.SocketFiles(d.pid, 0, 0, func(_ int, inode uint32) bool { return fn(inode) })
	return err
}

// processSockets are the process's listening sockets on a port that is not watched:
// with --port only the owners of the listeners asked for are known. Where somebody
// listens there and the process's sockets cannot be seen, that is the error.
func (d *door) processSockets(port uint16) (addresses []netip.AddrPort, err error) {
	there := map[uint32]netip.AddrPort{}
	err = netns.Do(d.namespace, func() error {
		conn, err := sockdiag.Dial()
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		return conn.Listeners(func(l *sockdiag.Listener) error {
			if l.Address().Port() == port {
				there[l.Inode] = l.Address()
			}
			return nil
		})
	})
	if err != nil || len(there) == 0 {
		return nil, errPort
	}
	err = d.eachSocket(func(inode uint32) bool {
		if at, ok := there[inode]; ok {
			addresses = append(addresses, at)
		}
		delete(there, inode)
		return len(there) > 0
	})
	switch {
	case len(addresses) > 0:
		return addresses, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, errAnother
	}
	return nil, errPort
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
