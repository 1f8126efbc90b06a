// Package shares holds what is remembered of clients, of which strangers send as many as they like.
package shares

import (
	"hash/maphash"
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// Ends are those of a connection.
type Ends struct{ Server, Client End }

// End is an address and a port.
type End struct {
	Addr packet.Addr
	Port uint16
}

// ToServer are the ends of a client's segment.
func ToServer(s *packet.Segment) Ends { return Ends{End{s.Dst, s.DstPort}, End{s.Src, s.SrcPort}} }

// ToClient are the ends of a server's segment.
func ToClient(s *packet.Segment) Ends { return Ends{End{s.Src, s.SrcPort}, End{s.Dst, s.DstPort}} }

// Netip is the same for others.
func (e *End) Netip() netip.AddrPort { return netip.AddrPortFrom(e.Addr.Netip(), e.Port) }

// Slots are places, one for each client. Where all are taken, of the server's address that has most, and there of the client's address
// that has most, one goes, be it the newcomer. Of those that have as many, it is the one whose lot is highest, and of these the newcomer.
// They are not safe for concurrent use.
type Slots[T any] struct {
	seed  maphash.Seed // of the names, which nobody can foresee
	taken []slot[T]
	next  next
}

type slot[T any] struct {
	value                  T
	ends                   Ends
	name, server, host     uint64 // its own, its server's, and its host's at that
	ofItsServer, ofItsHost uint64 // how many are of the same
	lot                    uint64
}

// next is whose slot is the next to go, while all are taken and none changes.
type next struct {
	known       bool
	server      End
	host        packet.Addr
	hostsOthers bool // others of its host have slots
	lot         uint64
}

// Len is how many are taken.
func (p *Slots[T]) Len() int { return len(p.taken) }

// Find is what is remembered of a client, nil for nothing.
func (p *Slots[T]) Find(e *Ends) *T {
	if i := p.at(e); i >= 0 {
		return &p.taken[i].value
	}
	return nil
}

// Forget is of a client that may be there.
func (p *Slots[T]) Forget(e *Ends) {
	if i := p.at(e); i >= 0 {
		p.remove(i)
	}
}

func (p *Slots[T]) at(e *Ends) int {
	if len(p.taken) == 0 {
		return -1
	}
	name := maphash.Comparable(p.seed, *e)
	for i := range p.taken {
		if p.taken[i].name == name {
			return i
		}
	}
	return -1
}

// Refuses reports that Add would not remember a client, as those of its server have most, and of these none should go
// before it. It may be false where Add refuses, too, and takes a twentieth of the time.
func (p *Slots[T]) Refuses(e *Ends, most int, lot uint64) bool {
	n := &p.next
	if len(p.taken) < most {
		return false
	}
	if !n.known {
		g := &p.taken[p.greediest()]
		*n = next{true, g.ends.Server, g.ends.Client.Addr.Host(), g.ofItsHost > 1, g.lot}
	}
	return lot >= n.lot && e.Server == n.server && (!n.hostsOthers || e.Client.Addr.Host() == n.host)
}

// Add remembers a client that is not there, if it is not the one that goes where more than most would be.
func (p *Slots[T]) Add(e *Ends, value T, most int, lot uint64) bool {
	if p.taken == nil {
		p.seed, p.taken = maphash.MakeSeed(), make([]slot[T], 0, most+1)
	}
	p.next.known = false
	n := slot[T]{
		value: value, ends: *e, name: maphash.Comparable(p.seed, *e), server: maphash.Comparable(p.seed, e.Server),
		host: maphash.Comparable(p.seed, Ends{e.Server, End{Addr: e.Client.Addr.Host()}}), lot: lot,
	}
	for i := range p.taken {
		if t := &p.taken[i]; t.server == n.server {
			t.ofItsServer++
			n.ofItsServer = t.ofItsServer - 1
			if t.host == n.host {
				t.ofItsHost++
				n.ofItsHost = t.ofItsHost - 1
			}
		}
	}
	n.ofItsServer++
	n.ofItsHost++
	if p.taken = append(p.taken, n); len(p.taken) <= most {
		return true
	}
	greediest := p.greediest()
	p.remove(greediest)
	return greediest < most
}

// RemoveIf forgets those of which it is said.
func (p *Slots[T]) RemoveIf(is func(*Ends, *T) bool) {
	for i := 0; i < len(p.taken); {
		if is(&p.taken[i].ends, &p.taken[i].value) {
			p.remove(i)
		} else {
			i++
		}
	}
}

func (p *Slots[T]) greediest() (at int) {
	for i := range p.taken {
		if p.taken[i].hasAsMuchAs(&p.taken[at]) {
			at = i
		}
	}
	return at
}

func (s *slot[T]) hasAsMuchAs(o *slot[T]) bool {
	if s.ofItsServer != o.ofItsServer {
		return s.ofItsServer > o.ofItsServer
	}
	if s.ofItsHost != o.ofItsHost {
		return s.ofItsHost > o.ofItsHost
	}
	return s.lot >= o.lot
}

func (p *Slots[T]) remove(at int) {
	p.next.known = false
	removed := &p.taken[at]
	server, host := removed.server, removed.host
	for i := range p.taken {
		if t := &p.taken[i]; t.server == server {
			t.ofItsServer--
			if t.host == host {
				t.ofItsHost--
			}
		}
	}
	last := len(p.taken) - 1
	p.taken[at] = p.taken[last]
	p.taken = p.taken[:last]
}
