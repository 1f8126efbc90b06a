// Package shares divides what strangers use together: slots of which whoever
// holds most gives one up, turns that go round by owner, and a ledger of what was
// refused or taken away. An owner is a client's address, a user or a network
// namespace, as a text.
package shares

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Slots are a number of slots. Where all are taken, a newcomer gets the oldest
// slot of the owner that holds most, if that is more than the newcomer's owner
// would then hold: so nobody's share falls below an equal one, and two owners do
// not take the same slot from each other in turns.
type Slots struct {
	max      int
	resource *Resource

	mu    sync.Mutex
	slots []*Slot // the oldest first
}

// Slot is one that is taken.
type Slot struct {
	of    *Slots
	owner string
	lost  func()
}

// NewSlots are that many, all of them free.
func NewSlots(n int, of *Resource) *Slots { return &Slots{max: n, resource: of} }

// Take takes a slot; nil where there is none for this owner. lost is called when
// it is taken away, from the goroutine of who takes it, and must not wait.
func (p *Slots) Take(owner string, lost func()) *Slot {
	slot := &Slot{of: p, owner: owner, lost: lost}
	p.mu.Lock()
	var out *Slot
	if len(p.slots) >= p.max {
		if out = p.greediest(owner); out == nil {
			p.mu.Unlock()
			p.resource.Refused(owner)
			return nil
		}
		p.remove(out)
	}
	p.slots = append(p.slots, slot)
	p.mu.Unlock()
	if out != nil {
		p.resource.Evicted(out.owner)
		out.lost()
	}
	return slot
}

// Leave gives the slot back, if it was not taken away.
func (p *Slot) Leave() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.remove(p)
}

func (p *Slots) greediest(newcomer string) *Slot {
	owners := make([]string, len(p.slots))
	for i, slot := range p.slots {
		owners[i] = slot.owner
	}
	if i := Greediest(owners, newcomer); i >= 0 {
		return p.slots[i]
	}
	return nil
}

func (p *Slots) remove(out *Slot) {
	for i, slot := range p.slots {
		if slot == out {
			p.slots = append(p.slots[:i:i], p.slots[i+1:]...)
			return
		}
	}
}

// Greediest is the first holding of the owner that has most of them, if that is more than the
// newcomer's would be; else -1. Holdings are the oldest first.
func Greediest(holdings []string, newcomer string) int {
	count := make(map[string]int)
	for _, owner := range holdings {
		count[owner]++
	}
	most, at := count[newcomer]+1, -1
	for i, owner := range holdings {
		if count[owner] > most {
			most, at = count[owner], i
		}
	}
	return at
}

// Surplus are the holdings that go where only most of them may stay: one after the other the first of the owner
// that has most. Holdings are the ones to go first, first; the slots are in order.
func Surplus(n, most int, owner func(i int) string) []int {
	of := make(map[string][]int)
	for i := range n {
		of[owner(i)] = append(of[owner(i)], i)
	}
	var out []int
	for range n - most {
		greediest, at := "", -1
		for o, list := range of {
			if at < 0 || len(list) > len(of[greediest]) || len(list) == len(of[greediest]) && list[0] < at {
				greediest, at = o, list[0]
			}
		}
		out = append(out, at)
		if of[greediest] = of[greediest][1:]; len(of[greediest]) == 0 {
			delete(of, greediest)
		}
	}
	slices.Sort(out)
	return out
}

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
