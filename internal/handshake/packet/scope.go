package packet

import (
	"net/netip"
	"slices"
)

// Scope is whose clients are followed: the ports, at addresses of the namespace.
type Scope struct {
	ports  []uint16          // sorted
	local  map[Addr]struct{} // nil: every address is
	locals []netip.Prefix    // of more than one address each
}

// SetPorts changes the ports.
func (s *Scope) SetPorts(ports []uint16) { s.ports = slices.Sorted(slices.Values(ports)) }

// Follows reports whether a port is one of them.
func (s *Scope) Follows(port uint16) bool {
	_, found := slices.BinarySearch(s.ports, port)
	return found
}

// SetLocal changes the addresses.
func (s *Scope) SetLocal(addrs []netip.Prefix) {
	s.local, s.locals = make(map[Addr]struct{}, len(addrs)), nil
	for _, p := range addrs {
		if p.IsSingleIP() {
			s.local[p.Addr().As16()] = struct{}{}
			continue
		}
		s.locals = append(s.locals, p)
	}
}

// IsLocal reports whether a segment is for this namespace.
func (s *Scope) IsLocal(to *Segment) bool { return to.Loopback() || s.has(to.Dst) }

// IsFrom reports whether a segment is one of this namespace.
func (s *Scope) IsFrom(from *Segment) bool { return from.Loopback() || s.has(from.Src) }

func (s *Scope) has(a Addr) bool {
	if s.local == nil {
		return true
	}
	if _, local := s.local[a]; local {
		return true
	}
	addr := a.Netip()
	return slices.ContainsFunc(s.locals, func(p netip.Prefix) bool { return p.Contains(addr) })
}
