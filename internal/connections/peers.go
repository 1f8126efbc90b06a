package connections

import (
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Peers counts outgoing connections by their peer.
type Peers map[netip.AddrPort]*Destination

// Destination counts the local ports in use towards one peer.
type Destination struct {
	Ports    int // TIME_WAIT included: it keeps its port
	TimeWait int
	Reusable int // of those in TIME_WAIT
	Inodes   []uint32
}

// Add takes a connection whose local port is ephemeral.
func (p Peers) Add(s *sockdiag.Socket, reuse Reuse) {
	d := p[s.RemoteAddress()]
	if d == nil {
		d = new(Destination)
		p[s.RemoteAddress()] = d
	}
	d.Ports++
	if s.Inode != 0 {
		d.Inodes = append(d.Inodes, s.Inode)
	}
	if s.State != sockdiag.TimeWait {
		return
	}
	d.TimeWait++
	if reuse.allows(s) {
		d.Reusable++
	}
}

// Busiest is the peer that most ports are used towards, nil for none.
func (p Peers) Busiest() (peer netip.AddrPort, most *Destination) {
	for address, d := range p {
		if most == nil || d.Ports-d.Reusable > most.Ports-most.Reusable {
			peer, most = address, d
		}
	}
	return peer, most
}

// Ephemeral is the size of net.ipv4.ip_local_port_range, both ends included; 0
// where it is not known.
func Ephemeral(sysctl map[string]int) int {
	first, last := sysctl["ip_local_port_range_min"], sysctl["ip_local_port_range_max"]
	if first <= 0 || last < first || last > 65535 {
		return 0
	}
	return last - first + 1
}

// AddOutgoing adds the ephemeral ports without those on which something
// listens: no outgoing connection gets one of them (__inet_hash_connect passes
// over ports that are bound), and a server there may have ten thousand clients.
func AddOutgoing(to *sockdiag.Ports, sysctl map[string]int, listening map[uint16]bool) {
	if Ephemeral(sysctl) == 0 {
		return
	}
	to.AddRange(uint16(sysctl["ip_local_port_range_min"]), uint16(sysctl["ip_local_port_range_max"]))
	for port := range listening {
		to.Remove(port)
	}
}
