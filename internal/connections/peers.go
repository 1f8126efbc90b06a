package connections

import (
	"net/netip"
	"time"

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

// timeWaitLength is TCP_TIMEWAIT_LEN.
const timeWaitLength = time.Minute

// Reuse says which sockets in TIME_WAIT leave their port to a new connection to the
// same peer (tcp_twsk_unique). Towards another peer any of them does. The zero value
// is none.
type Reuse struct {
	loopback, everywhere bool
	after                time.Duration // in TIME_WAIT
}

// ReuseOf is what net.ipv4.tcp_tw_reuse allows: 1 everywhere, 2 on the loopback; after
// a second, or tcp_tw_reuse_delay where the kernel has that; only of connections with
// timestamps.
func ReuseOf(sysctl map[string]int) Reuse {
	reuse, after := sysctl["tcp_tw_reuse"], time.Second
	if delay, ok := sysctl["tcp_tw_reuse_delay"]; ok {
		after = time.Duration(delay) * time.Millisecond
	}
	if stamps, ok := sysctl["tcp_timestamps"]; ok && stamps == 0 {
		return Reuse{}
	}
	return Reuse{loopback: reuse == 1 || reuse == 2, everywhere: reuse == 1, after: after}
}

// allows: that a peer has refused timestamps is not seen.
func (r Reuse) allows(s *sockdiag.Socket) bool {
	here := s.Remote.Addr().Unmap().IsLoopback() || s.Local.Addr().Unmap().IsLoopback()
	if !r.everywhere && (!r.loopback || !here) {
		return false
	}
	return timeWaitLength-time.Duration(s.Expires)*time.Millisecond > r.after
}
