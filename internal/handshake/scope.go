package handshake

import (
	"net/netip"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// scope is whose clients are followed: the ports, at addresses of the namespace.
type scope struct {
	ports  []uint16                 // sorted
	local  map[packet.Addr]struct{} // nil: every address is
	locals []netip.Prefix           // of more than one address each
}

func (s *scope) setPorts(ports []uint16) { s.ports = slices.Sorted(slices.Values(ports)) }

func (s *scope) follows(port uint16) bool {
	_, found := slices.BinarySearch(s.ports, port)
	return found
}

func (s *scope) setLocal(addrs []netip.Prefix) {
	s.local, s.locals = make(map[packet.Addr]struct{}, len(addrs)), nil
	for _, p := range addrs {
		if p.IsSingleIP() {
			s.local[p.Addr().As16()] = struct{}{}
			continue
		}
		s.locals = append(s.locals, p)
	}
}

// isLocal reports whether a segment is for this namespace.
func (s *scope) isLocal(to *packet.Segment) bool {
	if s.local == nil || to.Loopback() {
		return true
	}
	if _, own := s.local[to.Dst]; own {
		return true
	}
	addr := to.Dst.Netip()
	return slices.ContainsFunc(s.locals, func(p netip.Prefix) bool { return p.Contains(addr) })
}
