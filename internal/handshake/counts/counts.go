// Package counts counts clients by the server's address that they came to, before it is known which of the addresses are followed.
package counts

import "net/netip"

// mostUntold bounds the addresses of whose clients nobody has asked.
const mostUntold = 64

// Clients are counts by server. They are not safe for concurrent use.
type Clients struct {
	followed map[netip.AddrPort]uint64 // somebody has asked of these
	untold   map[netip.AddrPort]uint64
}

// Add counts a client.
func (c *Clients) Add(server netip.AddrPort) {
	if _, followed := c.followed[server]; followed {
		c.followed[server]++
		return
	}
	if c.untold == nil {
		c.followed, c.untold = make(map[netip.AddrPort]uint64), make(map[netip.AddrPort]uint64)
	}
	if c.untold[server]++; len(c.untold) > mostUntold {
		c.forgetUntold()
	}
}

// forgetUntold forgets an address of which nobody has asked: one of the port that has most of these, as a server can be asked at
// each of 127.0.0.0/8.
func (c *Clients) forgetUntold() {
	ports := make(map[uint16]int)
	for server := range c.untold {
		ports[server.Port()]++
	}
	var removed netip.AddrPort
	for server := range c.untold {
		if ports[server.Port()] > ports[removed.Port()] {
			removed = server
		}
	}
	delete(c.untold, removed)
}

// Of is how many there were at an address that is followed. After the last report of one its count begins again.
func (c *Clients) Of(server netip.AddrPort, last bool) uint64 {
	if n, untold := c.untold[server]; untold {
		delete(c.untold, server)
		c.followed[server] = n
	}
	n := c.followed[server]
	if last {
		delete(c.followed, server)
	}
	return n
}
