package room

import (
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// mostLoose is how many addresses of a port have an account of their own on which nothing is known to listen: whoever is on the
// same machine can send a SYN to each of 127.0.0.0/8.
const mostLoose = 4

// Accounts are which account has the clients of an address and port, by its index: each address on which something listens has its own,
// and of a port a few others have; one for each family has the clients of all further addresses. So they are no more than what
// is watched, whatever addresses strangers choose. The zero value has none.
type Accounts struct {
	Holdings
	of       map[account]uint16
	unused   []uint16 // indices
	made     int
	leaving  []uint16
	listened map[account]bool
	loose    map[uint16]int // by port

	recent   account // the latest that was looked for, as most are the same
	recentAt uint16  // its index
}

// account is an address and port, or all further addresses of a port.
type account struct {
	addr packet.Addr
	port uint16
}

// rest is the account of all further addresses of its port and family.
func (a account) rest() account {
	none := netip.IPv6Unspecified()
	if a.addr.Netip().Is4() {
		none = netip.IPv4Unspecified()
	}
	return account{none.As16(), a.port}
}

// Len is how many there are.
func (s *Accounts) Len() int { return len(s.of) + len(s.leaving) }

// Each calls fn with the index of each. It may forget that one.
func (s *Accounts) Each(fn func(i uint16)) {
	for _, i := range s.of {
		fn(i)
	}
	for _, i := range s.leaving {
		fn(i)
	}
}

func (s *Accounts) exact(k account) (i uint16, ok bool) {
	if k == s.recent {
		return s.recentAt, true
	}
	if i, ok = s.of[k]; ok {
		s.recent, s.recentAt = k, i
	}
	return i, ok
}

// Find is the account that has the clients of an address and port.
func (s *Accounts) Find(addr packet.Addr, port uint16) (i uint16, ok bool) {
	k := account{addr, port}
	if i, ok = s.exact(k); !ok {
		i, ok = s.of[k.rest()]
	}
	return i, ok
}

// Before is the account of further addresses, if it may have had clients of one before that had its own.
func (s *Accounts) Before(addr packet.Addr, port uint16) (i uint16, ok bool) {
	k := account{addr, port}
	if !s.listened[k] {
		return 0, false
	}
	i, ok = s.of[k.rest()]
	return i, ok
}

// Obtain is the account of an address and port. Where it is a new one, addr is whose it is.
func (s *Accounts) Obtain(addr packet.Addr, port uint16) (i uint16, of packet.Addr, isNew bool) {
	k := account{addr, port}
	if i, ok := s.exact(k); ok {
		return i, addr, false
	}
	rest, further := s.of[k.rest()]
	switch {
	case s.listened[k]:
	case further: // what it has open is found there
		return rest, addr, false
	case s.loose[port] >= mostLoose:
		k = k.rest()
	default:
		s.addLoose(port, 1)
	}
	if n := len(s.unused); n > 0 {
		i = s.unused[n-1]
		s.unused = s.unused[:n-1]
	} else {
		i = uint16(s.made)
		s.made++
	}
	if s.of == nil {
		s.of = make(map[account]uint16)
	}
	s.of[k] = i
	s.Assign(i, port)
	return i, k.addr, true
}

func (s *Accounts) addLoose(port uint16, n int) {
	if s.loose == nil {
		s.loose = make(map[uint16]int)
	}
	if s.loose[port] += n; s.loose[port] == 0 {
		delete(s.loose, port)
	}
}

// SetListened says on which addresses something listens. Accounts of those on which nothing does any more leave where they are more than
// a port may have of these, and it reports whether some do: what they have open is to be forgotten, and they have to be, too.
func (s *Accounts) SetListened(at []netip.AddrPort) bool {
	s.listened = make(map[account]bool, len(at))
	for _, a := range at {
		if !a.Addr().IsUnspecified() {
			s.listened[account{a.Addr().As16(), a.Port()}] = true
		}
	}
	clear(s.loose)
	for k, i := range s.of {
		switch {
		case s.listened[k], k == k.rest():
		case s.loose[k.port] < mostLoose:
			s.addLoose(k.port, 1)
		default:
			delete(s.of, k)
			s.leaving = append(s.leaving, i)
		}
	}
	s.recent, s.recentAt = account{}, 0
	return len(s.leaving) > 0
}

// Leaves reports whether an account does.
func (s *Accounts) Leaves(i uint16) bool {
	for _, l := range s.leaving {
		if l == i {
			return true
		}
	}
	return false
}

// Forget is of an account of which nothing is open: what its index is used for next is another.
func (s *Accounts) Forget(i uint16, addr packet.Addr, port uint16) {
	s.unused = append(s.unused, i)
	for n, l := range s.leaving {
		if l == i {
			s.leaving = append(s.leaving[:n:n], s.leaving[n+1:]...)
			return
		}
	}
	k := account{addr, port}
	if delete(s.of, k); !s.listened[k] && k != k.rest() {
		s.addLoose(port, -1)
	}
	s.recent, s.recentAt = account{}, 0
}
