package shares

import (
	"net"
	"net/netip"
)

// clientBits is the part of an IPv6 address that one client has: a host is given a
// whole /64 (RFC 6177, RFC 7934) and may use any address in it.
const clientBits = 64

// Client is the owner behind a remote address: an IPv4 address, the /64 of an IPv6
// address, "loopback" for all of this machine's own, or the text without its port where
// it is none (vsock).
func Client(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	addr = addr.Unmap().WithZone("")
	switch {
	case addr.IsLoopback(): // every process may use any of 127.0.0.0/8
		return "loopback"
	case addr.Is4():
		return addr.String()
	}
	prefix, _ := addr.Prefix(clientBits) // fails for more bits than the address has
	return prefix.String()
}
