package connscan

import (
	"maps"
	"math/rand/v2"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// reservoir are the connections of the watched ports that one walk found: all of them or,
// where they are more than are remembered, a random part (algorithm R, Vitter 1985).
type reservoir struct {
	ids        []sockdiag.ConnectionID
	ports      []portCount
	found      int
	unreadable bool // one of them cannot be asked for
}

// portCount is how many connections of a port were found.
type portCount struct {
	port  uint16
	found int
}

// begin begins another walk.
func (v *reservoir) begin() {
	*v = reservoir{ids: v.ids[:0], ports: v.ports[:0]}
}

func (v *reservoir) add(s *sockdiag.Socket, most int) {
	v.found++
	v.port(s.Local.Port()).found++
	switch {
	case s.Cookie == 0:
		v.unreadable = true
	case len(v.ids) < most:
		v.ids = append(v.ids, s.ID())
	default:
		if i := rand.IntN(v.found); i < len(v.ids) {
			v.ids[i] = s.ID()
		}
	}
}

func (v *reservoir) port(port uint16) *portCount {
	for i := range v.ports {
		if v.ports[i].port == port {
			return &v.ports[i]
		}
	}
	v.ports = append(v.ports, portCount{port: port})
	return &v.ports[len(v.ports)-1]
}

// whole reports whether all connections are remembered.
func (v *reservoir) whole() bool { return !v.unreadable && len(v.ids) == v.found }

// largest is how many connections of one port were found at most.
func (v *reservoir) largest() (most int) {
	for _, p := range v.ports {
		most = max(most, p.found)
	}
	return most
}

// pick chooses size connections of each port at random, or all that it has: of the ports
// that have at least least, and of which enough are remembered. added have come since, on
// any port.
func (v *reservoir) pick(size, least, added int) (ids []sockdiag.ConnectionID, of map[uint16]connections.Subset) {
	left := make(map[uint16]int, len(v.ports)) // that are remembered
	for i := range v.ids {
		left[v.ids[i].Local.Port()]++
	}
	of = make(map[uint16]connections.Subset, len(v.ports))
	for _, p := range v.ports {
		if p.found >= least {
			of[p.port] = connections.Subset{Known: p.found, New: added}
		}
	}
	for i := range v.ids { // selection sampling: each of the others is as likely
		port := v.ids[i].Local.Port()
		s, ok := of[port]
		if !ok {
			continue
		}
		if rand.IntN(left[port]) < size-s.Asked {
			ids = append(ids, v.ids[i])
			s.Asked++
			of[port] = s
		}
		left[port]--
	}
	maps.DeleteFunc(of, func(_ uint16, s connections.Subset) bool { return s.Asked < min(size, s.Known) })
	return ids, of
}
