package observer

import (
	"math"
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Outgoing connections are looked at only when there may be enough of them to
// matter, and then seldom: it is a walk of the table, and of the descriptors of
// each process.
const (
	outgoingFrom  = 0.4 // of the ephemeral ports, by the namespace's count of sockets
	outgoingEvery = 5 * time.Second
	outgoingPart  = 0.003 // of a core at most: a look that cost d is repeated after d / outgoingPart
	outgoingShare = 0.1   // of the connections there that a process must hold to be told
)

// outgoing remembers the latest look at a namespace's outgoing connections.
type outgoing struct {
	at      time.Time
	cost    time.Duration // of CPU time
	busiest map[processKey]model.Destination
}

// due tells whether to look again. Where a look is dear it is rare, so that it
// does not stretch the interval of the scans.
func (o *outgoing) due(now time.Time) bool {
	return now.Sub(o.at) >= max(outgoingEvery, time.Duration(float64(o.cost)/outgoingPart))
}

// destination counts the local ports in use towards one peer.
type destination struct {
	ports  int // TIME_WAIT included: it keeps its port
	inodes []uint32
}

// countOutgoing finds the peer that most ephemeral ports of each namespace are
// used towards, and tells it of the processes that hold connections to it. The
// ports are the namespace's, so those that others use count, too.
func (s *Sampler) countOutgoing(sc *scan) {
	for _, sp := range s.spaces {
		if !s.manyOutgoing(sc, sp) {
			sp.outgoing = outgoing{}
			continue
		}
		if sp.outgoing.due(sc.at) {
			s.lookAtOutgoing(sc, sp)
		}
		for _, c := range sc.kept {
			if c.owner == nil || c.space != sp || sc.processes[c.owner.PID] == nil {
				continue
			}
			p := sc.processes[c.owner.PID]
			if d, ok := sp.outgoing.busiest[processKey{p.PID, p.StartTime}]; ok {
				p.Busiest = &d
			}
		}
	}
}

func (s *Sampler) lookAtOutgoing(sc *scan, sp *space) {
	next := outgoing{at: sc.at}
	next.cost, _ = cpuTime(func() error {
		next.busiest = s.busiest(sc, sp)
		return nil
	})
	s.aside += next.cost
	sp.outgoing = next
}

// manyOutgoing tells from two numbers of /proc/net/sockstat whether a walk can
// find anything. The watched listeners' own connections are known not to be
// outgoing.
func (s *Sampler) manyOutgoing(sc *scan, sp *space) bool {
	if s.looping && s.scans == 1 {
		return false // a start must not wait for it
	}
	size := sp.ephemeralPorts()
	if size == 0 {
		return false
	}
	used := sp.sockstat["inuse"] + sp.foreignTimeWait(sc.at)
	for _, c := range sc.kept {
		if c.space == sp {
			used -= sc.gathered[c].sockets()
		}
	}
	return float64(used) >= outgoingFrom*float64(size)
}

// ephemeralPorts is the size of net.ipv4.ip_local_port_range, both ends included.
func (sp *space) ephemeralPorts() int {
	first, last := sp.sysctl["ip_local_port_range_min"], sp.sysctl["ip_local_port_range_max"]
	if first <= 0 || last < first || last > 65535 {
		return 0
	}
	return last - first + 1
}

func (s *Sampler) busiest(sc *scan, sp *space) map[processKey]model.Destination {
	out := make(map[processKey]model.Destination)
	peer, most := sp.busiestPeer(sc.all)
	if most == nil {
		return out
	}
	live := make(map[uint32]struct{}, len(most.inodes))
	for _, inode := range most.inodes {
		live[inode] = struct{}{}
	}
	least := outgoingShare * float64(len(live))
	for pid, p := range sc.processes {
		if p == nil || float64(sc.room(p)) <= least {
			continue
		}
		held := 0
		_ = s.src.Proc.SocketInodes(pid, func(inode uint32) {
			if _, ok := live[inode]; ok {
				held++
			}
		})
		if float64(held) > least {
			out[processKey{p.PID, p.StartTime}] = model.Destination{Address: peer, Ports: most.ports}
		}
	}
	return out
}

// room is how many outgoing connections a process can hold at most: a
// descriptor that an accepted connection has is none. It spares reading the
// links of a server's ten thousand descriptors.
func (sc *scan) room(p *model.Process) int {
	if p.OpenFiles == nil {
		return math.MaxInt
	}
	room := *p.OpenFiles
	for _, c := range sc.kept {
		if c.owner != nil && c.owner.PID == p.PID {
			room -= sc.gathered[c].connections.Accepted
		}
	}
	return room
}

// outgoingPorts are the ephemeral ports without those on which something
// listens: no outgoing connection gets one of them (__inet_hash_connect passes
// over ports that are bound), and a server there may have ten thousand clients.
func (sp *space) outgoingPorts(all []*candidate) []uint16 {
	listening := make(map[uint16]bool)
	for _, c := range all {
		if c.space == sp {
			listening[c.port()] = true
		}
	}
	ports := make([]uint16, 0, sp.ephemeralPorts())
	for p := sp.sysctl["ip_local_port_range_min"]; p <= sp.sysctl["ip_local_port_range_max"]; p++ {
		if !listening[uint16(p)] {
			ports = append(ports, uint16(p))
		}
	}
	return ports
}

// busiestPeer walks the connections whose local port is one of those.
func (sp *space) busiestPeer(all []*candidate) (peer netip.AddrPort, most *destination) {
	peers := make(map[netip.AddrPort]*destination)
	sp.slow.OnRestart = func() { clear(peers) }
	err := sp.slow.Sockets(sp.outgoingPorts(all), sockdiag.Connected(), func(c *sockdiag.Socket) error {
		d := peers[c.RemoteAddress()]
		if d == nil {
			d = new(destination)
			peers[c.RemoteAddress()] = d
		}
		d.ports++
		if c.Inode != 0 {
			d.inodes = append(d.inodes, c.Inode)
		}
		return nil
	})
	if err != nil {
		return peer, nil
	}
	for address, d := range peers {
		if most == nil || d.ports > most.ports {
			peer, most = address, d
		}
	}
	return peer, most
}
