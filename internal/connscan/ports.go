package connscan

import (
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/openfiles"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// Outgoing connections are read only when there may be enough of them to matter,
// and then rarely: each takes half a microsecond of a walk, and a sample of the
// descriptors of each process is read.
const (
	outgoingFrom  = 0.4 // of the ephemeral ports, by the namespace's count of sockets
	outgoingEvery = 5 * time.Second
	outgoingPart  = 0.003 // of a core at most: what cost d is repeated after d / outgoingPart
	ownedPart     = 0.1   // of the connections there that a process must hold to be named
	// A socket takes a tenth of a microsecond to be passed over, half of one to be
	// reported, and another half with tcp_info. With this many outgoing ones, which are this part
	// of the table, a walk of their own takes less.
	apartFrom = 10_000
	apartPart = 0.3
)

// lastSearch is the latest search for the peer that most ephemeral ports of a namespace are
// used towards. The ports are the namespace's, so those that others use count, too.
type lastSearch struct {
	at    time.Time
	cost  time.Duration       // of CPU time
	after hostproc.ProcessKey // the last owner that was read
}

// due reports whether to read again. Where that is expensive it is rare.
func (b *lastSearch) due(now time.Time) bool {
	return now.Sub(b.at) >= cputime.Rest(b.cost, outgoingEvery, outgoingPart)
}

// portSearch is what one walk searches for in addition to the watched ports, and finds.
type portSearch struct {
	many  bool // there may be enough of them to matter
	apart bool // a walk of their own, without tcp_info, takes less
	due   bool // it is time
	left  bool // there may be enough in TIME_WAIT, which no process holds, to matter; or it is time and workers may hold them
	peers connections.Peers
	reuse connections.Reuse
	whole bool // all of the table was walked
}

// searchPorts says whether the next walk of a namespace takes its outgoing
// connections along.
func (s *Scanner) searchPorts(r *facts.Watchlist, n *namespace.Namespace) *portSearch {
	out := &portSearch{peers: make(connections.Peers)}
	sysctl, _ := n.Sysctl()
	out.reuse = connections.ReuseOf(sysctl)
	last := s.busy[n.ID]
	used, waiting, all := s.foreign(r, n)
	size := connections.Ephemeral(sysctl)
	out.left = size > 0 && float64(waiting) >= outgoingFrom*float64(size)
	out.many = size > 0 && float64(used) >= outgoingFrom*float64(size)
	out.apart = used >= apartFrom && float64(used) >= apartPart*float64(all)
	out.due = out.many && last.due(s.now())
	out.left = out.left || out.due && out.apart && s.hasWorkers(r, n)
	return out
}

// settleOutgoing publishes what a walk of some cost has found.
func (s *Scanner) settlePorts(r *facts.Watchlist, n *namespace.Namespace, out *portSearch, walk time.Duration) (cost time.Duration) {
	next := lastSearch{after: s.busy[n.ID].after}
	var of map[hostproc.ProcessKey]model.Destination
	switch {
	case !out.many:
	case !out.due || !out.whole:
		return 0
	default:
		next.at = s.now()
		sysctl, _ := n.Sysctl()
		cost, _ = cputime.Of(func() error {
			of, next.after = s.busiest(r, n.ID, out.peers, connections.Ephemeral(sysctl), next.after)
			return nil
		})
		next.cost = walk + cost
	}
	s.busy[n.ID] = next
	s.store.PutBusiest(n.ID, of)
	return cost
}

// foreign is how many sockets of a namespace, by two numbers of /proc/net/sockstat, are
// not the watched listeners' own, which is how many outgoing connections there can be at
// most, waiting of them in TIME_WAIT. all are all sockets.
func (s *Scanner) foreign(r *facts.Watchlist, n *namespace.Namespace) (foreign, waiting, all int) {
	stat := n.Sockstat()
	waiting = s.memory(n.ID).timeWait.Foreign(stat["tw"])
	foreign = stat["inuse"] + waiting
	for _, e := range r.In(n.ID) {
		list := s.store.Connections(e.ID)
		if last, ok := list.Last(); ok {
			foreign -= last.Value.Sockets()
		}
	}
	return foreign, waiting, stat["inuse"] + stat["tw"]
}

// mostRead is of how many processes one search reads the descriptors: of owners, and of mostWorkers worker processes of each.
const mostRead = 32

// portsFrom are the fewest ports towards a peer for which anybody is read: there is no limit to how small a range of ports
// an administrator of a namespace may set.
const portsFrom = 16

// busiest is who holds the connections to the peer that most ports are used towards. No more than mostRead processes are read for
// it, owners in turns; of whom it is not the turn the latest answer stands.
func (s *Scanner) busiest(r *facts.Watchlist, netns uint64, peers connections.Peers, size int, after hostproc.ProcessKey) (map[hostproc.ProcessKey]model.Destination, hostproc.ProcessKey) {
	out := make(map[hostproc.ProcessKey]model.Destination)
	peer, most := peers.Busiest()
	if most == nil {
		return out, after
	}
	d := model.Destination{Address: peer, Ports: most.Ports, TimeWait: most.TimeWait, Reusable: most.Reusable}
	if d.Taken() < portsFrom || float64(d.Taken()) < outgoingFrom*float64(size) {
		return out, after
	}
	live := make(map[uint32]struct{}, len(most.Inodes))
	for _, inode := range most.Inodes {
		live[inode] = struct{}{}
	}
	if len(live) == 0 {
		return s.unowned(r, netns, d), after
	}
	least := ownedPart * float64(len(live))
	before, left := s.store.Busiest(netns), mostRead
	for _, key := range ownersFrom(r, netns, after) {
		itself, workers := float64(s.room(r, key)) > least, min(s.workers(key), mostWorkers)
		takes := workers
		if itself {
			takes++
		}
		if left -= takes; left < 0 { // it is the next one's turn
			left = 0
			if last, ok := before[key]; ok && last.Address == peer && !last.Unowned {
				out[key] = d
			}
			continue
		}
		if left > 0 || takes > 0 {
			after = key
		}
		if itself && s.estimateSockets(key.PID, live) > least || workers > 0 && s.workersSockets(key, live) > least {
			out[key] = d
		}
	}
	return out, after
}

// hasWorkers reports whether a process of the namespace has others work for it, whose connections are not its own.
func (s *Scanner) hasWorkers(r *facts.Watchlist, n *namespace.Namespace) bool {
	for key, e := range r.Owners() {
		if e.ID.NetNS == n.ID && s.workers(key) > 0 {
			return true
		}
	}
	return false
}

// workers is how many worker processes a process had at its latest reading; as many of those that were not read as of the others.
func (s *Scanner) workers(key hostproc.ProcessKey) int {
	known := s.store.Process(key)
	last, ok := known.Readings.Last()
	if !ok || last.Value == nil {
		return 0
	}
	p := last.Value
	return p.Children + p.ChildrenUnread*p.Children/mostChildren
}

// mostWorkers is of how many worker processes the descriptors are read, and mostChildren among how many processes they are looked for: whoever
// owns the server may have any number of others.
const mostWorkers, mostChildren = 16, 64

// workersSockets estimates how many of the sockets a process's workers have, by the first of these.
func (s *Scanner) workersSockets(key hostproc.ProcessKey, live map[uint32]struct{}) float64 {
	all := s.workers(key)
	if all == 0 {
		return 0
	}
	parent, err := s.proc.Stat(key.PID)
	if err != nil {
		return 0
	}
	pids, _ := s.proc.Children(key.PID)
	seen, sum := 0, 0.
	for _, pid := range pids[:min(len(pids), mostChildren)] {
		st, err := s.proc.Stat(pid)
		if err != nil || st.Comm != parent.Comm {
			continue
		}
		sum += s.estimateSockets(pid, live)
		if seen++; seen == min(all, mostWorkers) {
			break
		}
	}
	if seen == 0 {
		return 0
	}
	return sum * max(1, float64(all)/float64(seen))
}

// unowned are ports that no process holds: those of whoever was last seen to hold
// connections to that peer, else of somebody in the namespace.
func (s *Scanner) unowned(r *facts.Watchlist, netns uint64, d model.Destination) map[hostproc.ProcessKey]model.Destination {
	out := make(map[hostproc.ProcessKey]model.Destination)
	for key, last := range s.store.Busiest(netns) {
		if last.Address == d.Address && !last.Unowned {
			out[key] = d
		}
	}
	if len(out) > 0 {
		return out
	}
	d.Unowned = true
	for key, e := range r.Owners() {
		if e.ID.NetNS == netns {
			out[key] = d
		}
	}
	return out
}

// descriptorsRead is how many descriptors are read to estimate a share: its standard
// error is at most 1.6 %.
const descriptorsRead = 1024

// estimateSockets estimates how many of the sockets a process has, from a random sample of
// its descriptors.
func (s *Scanner) estimateSockets(pid int, live map[uint32]struct{}) float64 {
	hits := 0
	each, _ := openfiles.SubsetOfSockets(s.proc, pid, descriptorsRead, func(inode uint32) {
		if _, ok := live[inode]; ok {
			hits++
		}
	})
	return float64(hits) * max(1, each)
}

// room is how many outgoing connections a process can hold at most: a
// descriptor that an accepted connection has is none. It spares reading the
// links of a server's ten thousand descriptors.
func (s *Scanner) room(r *facts.Watchlist, key hostproc.ProcessKey) int {
	p := s.store.Process(key)
	last, ok := p.Readings.Last()
	if !ok || last.Value == nil || last.Value.OpenFiles == nil {
		return math.MaxInt
	}
	room := *last.Value.OpenFiles
	for i := range r.Watched {
		if k, ok := r.Watched[i].Process(); ok && k == key {
			list := s.store.Connections(r.Watched[i].ID)
			if found, ok := list.Last(); ok {
				room -= found.Value.Counts.Accepted
			}
		}
	}
	return room
}
