package connections

import (
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Bound is what a listener is bound to: an address, and a device or 0 for any.
type Bound struct {
	Local  netip.AddrPort
	Device uint32
}

// Matcher finds the listener a connection belongs to.
type Matcher struct {
	Listeners map[Bound]*Found

	// The latest answer, which mostly is the next one's, too: connections differ
	// by the client's end.
	latest Bound
	found  *Found
}

// Find is the listener that a connection belongs to, nil for none.
func (m *Matcher) Find(s *sockdiag.Socket) *Found {
	if b := (Bound{s.Local, s.Interface}); m.found == nil || b != m.latest {
		m.latest, m.found = b, m.search(s)
	}
	return m.found
}

// search tries the most specific bound address, then the same family's wildcard,
// then dual-stack [::], on the connection's device before any (the order of
// the kernel's __inet_lookup_listener scores). nil means that no listener fits.
func (m *Matcher) search(s *sockdiag.Socket) *Found {
	local := s.LocalAddress()
	tries := [3]netip.AddrPort{local, local, netip.AddrPortFrom(netip.IPv6Unspecified(), local.Port())}
	if local.Addr().Is4() {
		tries[1] = netip.AddrPortFrom(netip.IPv4Unspecified(), local.Port())
	}
	for _, address := range tries {
		if s.Interface != 0 {
			if g, ok := m.Listeners[Bound{address, s.Interface}]; ok {
				return g
			}
		}
		if g, ok := m.Listeners[Bound{address, 0}]; ok {
			return g
		}
	}
	return nil
}
