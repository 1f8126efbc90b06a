package observer

import (
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Outgoing connections are read only when there may be enough of them to matter,
// and then rarely: it is a walk of the table, and of the descriptors of each
// process.
const (
	outgoingFrom  = 0.4 // of the ephemeral ports, by the namespace's count of sockets
	outgoingEvery = 5 * time.Second
	outgoingPart  = 0.003 // of a core at most: what cost d is repeated after d / outgoingPart
	outgoingShare = 0.1   // of the connections there that a process must hold to be named
)

// busiest is the peer that most ephemeral ports of a namespace are used towards,
// by the processes that hold connections to it. The ports are the namespace's, so
// those that others use count, too.
type busiest struct {
	at   time.Time
	cost time.Duration // of CPU time
	of   map[hostproc.ProcessKey]model.Destination
}

// due tells whether to read again. Where that is expensive it is rare.
func (b *busiest) due(now time.Time) bool {
	return now.Sub(b.at) >= max(outgoingEvery, time.Duration(float64(b.cost)/outgoingPart))
}

// busiestOf is the latest reading of a process's busiest peer, nil for none.
func (ts *tables) busiestOf(netns uint64, key hostproc.ProcessKey) *model.Destination {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	d, ok := ts.busy[netns].of[key]
	if !ok {
		return nil
	}
	return new(d)
}

// outgoing reads the outgoing connections of a namespace, if it is time.
func (ts *tables) outgoing(r *roster, n *namespace.Namespace, ps *processes) time.Duration {
	sysctl, _ := n.Sysctl()
	now := ts.now()
	ts.mu.Lock()
	last := ts.busy[n.ID]
	ts.mu.Unlock()
	many := ts.manyOutgoing(r, n, sysctl)
	if many && !last.due(now) {
		return 0
	}
	next := busiest{}
	if many {
		next.at = now
		next.cost, _ = cputime.Of(func() error {
			next.of = ts.busiest(r, n, sysctl, ps)
			return nil
		})
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.busy[n.ID] = next
	return next.cost
}

// manyOutgoing tells from two numbers of /proc/net/sockstat whether a walk can
// find anything. The watched listeners' own connections are known not to be
// outgoing.
func (ts *tables) manyOutgoing(r *roster, n *namespace.Namespace, sysctl map[string]int) bool {
	size := connections.Ephemeral(sysctl)
	if size == 0 {
		return false
	}
	stat := n.Sockstat()
	used := stat["inuse"] + ts.table(n.ID).timeWait.Foreign(stat["tw"])
	for _, e := range r.in(n.ID) {
		list := ts.of(e.ID)
		if last, ok := list.last(); ok {
			used -= last.value.Sockets()
		}
	}
	return float64(used) >= outgoingFrom*float64(size)
}

func (ts *tables) busiest(r *roster, n *namespace.Namespace, sysctl map[string]int, ps *processes) map[hostproc.ProcessKey]model.Destination {
	out := make(map[hostproc.ProcessKey]model.Destination)
	peers := outgoingPeers(r, n, sysctl)
	peer, most := peers.Busiest()
	if most == nil {
		return out
	}
	live := make(map[uint32]struct{}, len(most.Inodes))
	for _, inode := range most.Inodes {
		live[inode] = struct{}{}
	}
	least := outgoingShare * float64(len(live))
	for key, e := range r.owners() {
		if e.ID.NetNS != n.ID || float64(ts.room(r, key, ps)) <= least {
			continue
		}
		if ts.holds(key, live, ps) > least {
			out[key] = model.Destination{Address: peer, Ports: most.Ports}
		}
	}
	return out
}

// sampled is how many descriptors are read to estimate a share: its standard
// error is at most 1.6 %.
const sampled = 1024

// holds estimates how many of the sockets a process has, from a random sample of
// its descriptors.
func (ts *tables) holds(key hostproc.ProcessKey, live map[uint32]struct{}, ps *processes) float64 {
	hits := 0
	read, _ := ts.proc.SampleSocketInodes(key.PID, sampled, func(inode uint32) {
		if _, ok := live[inode]; ok {
			hits++
		}
	})
	readings := ps.of(key)
	last, ok := readings.last()
	if !ok || last.value == nil || last.value.OpenFiles == nil || read == 0 {
		return float64(hits)
	}
	return float64(hits) * max(1, float64(*last.value.OpenFiles)/float64(read))
}

// room is how many outgoing connections a process can hold at most: a
// descriptor that an accepted connection has is none. It spares reading the
// links of a server's ten thousand descriptors.
func (ts *tables) room(r *roster, key hostproc.ProcessKey, ps *processes) int {
	readings := ps.of(key)
	last, ok := readings.last()
	if !ok || last.value == nil || last.value.OpenFiles == nil {
		return math.MaxInt
	}
	room := *last.value.OpenFiles
	for i := range r.kept {
		if k, ok := r.kept[i].process(); ok && k == key {
			list := ts.of(r.kept[i].ID)
			if found, ok := list.last(); ok {
				room -= found.value.Counts.Accepted
			}
		}
	}
	return room
}

// outgoingPeers walks the connections whose local port is ephemeral.
func outgoingPeers(r *roster, n *namespace.Namespace, sysctl map[string]int) connections.Peers {
	listening := make(map[uint16]bool)
	for _, c := range r.all {
		if c.ID.NetNS == n.ID {
			listening[c.Port()] = true
		}
	}
	peers := make(connections.Peers)
	ports := connections.OutgoingPorts(sysctl, listening)
	err := n.Walk(ports, sockdiag.Connected(), func() { clear(peers) }, func(s *sockdiag.Socket) error {
		peers.Add(s)
		return nil
	})
	if err != nil {
		return nil
	}
	return peers
}
