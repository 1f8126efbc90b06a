// Package room divides the room for open attempts among the endpoints of a network namespace.
package room

// Holdings are how many attempts each endpoint has in the table, and each port: a port's listener can be reached by many
// addresses, and the listeners of several owners can have the same port.
type Holdings struct {
	all       int
	endpoints []endpoint // by index
	ports     []port
}

type endpoint struct{ open, port int }

type port struct {
	number          uint16
	open, endpoints int
}

// Assign says that an index is an endpoint of a port from now on. What it was before holds nothing any more.
func (h *Holdings) Assign(i, number uint16) {
	if int(i) < len(h.endpoints) {
		h.ports[h.endpoints[i].port].endpoints--
	} else {
		h.endpoints = append(h.endpoints, endpoint{})
	}
	at := h.portOf(number)
	h.ports[at].endpoints++
	h.endpoints[i] = endpoint{port: at}
}

// portOf is the index of a port, of a new one where none of its endpoints is known.
func (h *Holdings) portOf(number uint16) int {
	unused := -1
	for i := range h.ports {
		switch {
		case h.ports[i].endpoints == 0:
			unused = i
		case h.ports[i].number == number:
			return i
		}
	}
	if unused < 0 {
		unused = len(h.ports)
		h.ports = append(h.ports, port{})
	}
	h.ports[unused] = port{number: number}
	return unused
}

// Add adds to what an endpoint holds, or takes away.
func (h *Holdings) Add(i uint16, n int) {
	e := &h.endpoints[i]
	e.open += n
	h.ports[e.port].open += n
	h.all += n
}

// Most is the endpoint that has most, of the port that has.
func (h *Holdings) Most() (i uint16) {
	most := 0
	for p := range h.ports {
		if h.ports[p].open > h.ports[most].open {
			most = p
		}
	}
	open := -1
	for n := range h.endpoints {
		if e := &h.endpoints[n]; e.port == most && e.open > open {
			i, open = uint16(n), e.open
		}
	}
	return i
}

// Greediest is who has to give up an attempt for one of a newcomer's: the port that has most, and there the endpoint that
// has. False where the newcomer would then have more than that.
func (h *Holdings) Greediest(newcomer uint16) (i uint16, ok bool) {
	its := h.endpoints[newcomer]
	if its.open > h.all/2 {
		return 0, false // as in most floods
	}
	greediest, most := its.port, h.ports[its.port].open+1
	for p := range h.ports {
		if h.ports[p].open > most {
			greediest, most = p, h.ports[p].open
		}
	}
	most = 0
	if greediest == its.port {
		if h.ports[greediest].endpoints == 1 {
			return 0, false
		}
		most = its.open + 1
	}
	for n := range h.endpoints {
		if e := &h.endpoints[n]; e.port == greediest && e.open > most {
			i, ok, most = uint16(n), true, e.open
		}
	}
	return i, ok
}
