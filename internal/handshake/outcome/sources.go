package outcome

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// Source is an address that clients come from.
type Source struct {
	Addr netip.Addr
	// Clients of it, in the last one to two minutes: a lower bound where more
	// than a few dozen addresses compete.
	Clients uint64
}

const (
	sourceSlots    = 32
	sourcePeriod   = time.Minute
	topSources     = 5
	balancerLeast  = 100 // clients, each with a port of its own
	balancerFactor = 2   // at least every second client of the port
)

// heavy finds the addresses that come most often (the Space-Saving algorithm,
// Metwally et al., 2005): a newcomer takes the place of the one that came least,
// and its count, which then is its error.
type heavy struct {
	slots [sourceSlots]heavySlot
	used  int
	total uint64
}

type heavySlot struct {
	addr         packet.Addr
	count, error uint64
}

func (h *heavy) add(a *packet.Addr) {
	h.total++
	least := 0
	for i := range h.used {
		s := &h.slots[i]
		if s.addr == *a {
			s.count++
			return
		}
		if s.count < h.slots[least].count {
			least = i
		}
	}
	if h.used < len(h.slots) {
		h.slots[h.used] = heavySlot{addr: *a, count: 1}
		h.used++
		return
	}
	h.slots[least] = heavySlot{addr: *a, count: h.slots[least].count + 1, error: h.slots[least].count}
}

// sources are the heaviest of the last one to two minutes.
type sources struct {
	now, before *heavy
	turn        time.Duration // when now was begun
}

func (s *sources) add(at time.Duration, a *packet.Addr) {
	s.rotate(at)
	if s.now == nil {
		s.now, s.turn = new(heavy), at
	}
	s.now.add(a)
}

func (s *sources) rotate(at time.Duration) {
	switch age := at - s.turn; {
	case age >= 2*sourcePeriod:
		s.now, s.before, s.turn = nil, nil, at
	case age >= sourcePeriod && s.now != nil:
		s.now, s.before, s.turn = s.before, s.now, at
		if s.now == nil {
			s.now = new(heavy)
		}
		*s.now = heavy{}
	}
}

// top returns the heaviest, the heaviest first, and how many clients there were.
func (s *sources) top(at time.Duration) (top []Source, total uint64) {
	s.rotate(at)
	for _, h := range []*heavy{s.now, s.before} {
		if h == nil {
			continue
		}
		total += h.total
		for _, slot := range h.slots[:h.used] {
			top = merge(top, slot)
		}
	}
	slices.SortFunc(top, func(a, b Source) int {
		return cmp.Or(cmp.Compare(b.Clients, a.Clients), a.Addr.Compare(b.Addr))
	})
	return top[:min(len(top), topSources)], total
}

func merge(list []Source, slot heavySlot) []Source {
	sure := slot.count - slot.error
	ip := slot.addr.Netip()
	for i := range list {
		if list[i].Addr == ip {
			list[i].Clients += sure
			return list
		}
	}
	return append(list, Source{Addr: ip, Clients: sure})
}

const (
	mostProxies = 3
	proxyPart   = .8 // of at least balancerLeast clients
)

// proxies are the few of the callers, the heaviest first, that most clients come from.
func proxies(callers []Source, total uint64) []Source {
	sum := uint64(0)
	for i, s := range callers[:min(len(callers), mostProxies)] {
		if sum += s.Clients; total >= balancerLeast && float64(sum) >= proxyPart*float64(total) {
			return callers[:i+1]
		}
	}
	return nil
}
