package watchlist

import (
	"cmp"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

const (
	// drainingEvery bounds how often the connections of a missed port are looked for.
	drainingEvery = time.Second
	// mostDraining is how many of them are kept for each network namespace, of all its missed ports.
	mostDraining = 65_536
	// mostHolders is of how many of a port's it is asked who holds them, in turns of those who made them: one process may
	// have closed its own meanwhile, and anybody can make connections from such a port.
	mostHolders = 3
)

// draining are the processes that have closed the listener of a missed port and still serve
// the connections which came through it, as in a graceful shutdown.
type draining struct {
	at    time.Time
	cost  time.Duration
	found []drainingServer
}

type drainingServer struct {
	target    model.Target
	start     uint64 // of the process
	connected model.OtherProcess
}

// seekDraining says who has established connections of a port on which nothing listens any more.
func (r *listing) seekDraining() {
	d := &r.draining
	missed := make(map[uint64][]uint16)
	for _, t := range r.Targets {
		if !t.Up {
			missed[t.NetNS] = append(missed[t.NetNS], t.Port)
		}
	}
	if len(missed) == 0 || r.Sources.Owners == nil {
		*d = draining{}
		return
	}
	if d.at.IsZero() || r.At.Sub(d.at) >= cputime.Rest(d.cost, drainingEvery, searchPart) {
		d.at, d.found = r.At, nil
		d.cost, _ = cputime.Of(func() error {
			for netns, ports := range missed {
				if n := r.Lister.Namespaces.Find(netns); n != nil {
					d.found = append(d.found, r.drainingIn(n, ports)...)
				}
			}
			return nil
		})
		r.searched += d.cost
	}
	d.say(r.Sources.Proc, r.Targets)
}

// say names those that are still there.
func (d *draining) say(proc hostproc.FS, targets []model.Target) {
	for i := range d.found {
		s := &d.found[i]
		at := slices.IndexFunc(targets, func(t model.Target) bool { return !t.Up && t.Same(s.target) })
		if at < 0 {
			continue
		}
		if stat, err := proc.Stat(s.connected.PID); err == nil && !stat.Exited && stat.StartTime == s.start {
			targets[at].Draining = new(s.connected)
		}
	}
}

// drainingIn are those of one namespace. A port of which the kernel makes outgoing connections is
// left out: it may be one of these.
func (r *listing) drainingIn(n *namespace.Namespace, ports []uint16) (out []drainingServer) {
	n.ReadSysctls(r.At, sysctlsEvery)
	sysctl, _ := n.Sysctl()
	first, last := sysctl["ip_local_port_range_min"], sysctl["ip_local_port_range_max"]
	wanted := new(sockdiag.Ports)
	for _, port := range ports {
		if first > 0 && (int(port) < first || int(port) > last) {
			wanted.Add(port)
		}
	}
	var found served
	states := sockdiag.States(0).With(sockdiag.Established).With(sockdiag.Listen)
	err := n.Walk(sockdiag.Wanted{Ports: wanted, States: states}, func() { found = served{} }, func(s *sockdiag.Socket) error {
		switch {
		case s.State == sockdiag.Listen: // since the listeners were listed; the kernel tells these first
			wanted.Remove(s.Local.Port())
		case s.Inode != 0 && wanted.Has(s.Local.Port()): // without an inode no process has it
			found.add(owner.Socket{Inode: s.Inode, Port: s.Local.Port(), UID: s.UID, Cgroup: s.Cgroup, Net: n.Net}, mostDraining)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	for _, port := range ports {
		if !wanted.Has(port) {
			continue
		}
		if s, ok := r.holderOf(inTurns(found.ports[port])); ok {
			s.target = model.Target{Port: port, NetNS: n.ID}
			out = append(out, s)
		}
	}
	return out
}

// served are connections of missed ports.
type served struct {
	ports map[uint16][]owner.Socket
	all   int
}

// add keeps one; where that are too many the latest of the port that has most goes.
func (f *served) add(s owner.Socket, most int) {
	if f.ports == nil {
		f.ports = make(map[uint16][]owner.Socket)
	}
	f.ports[s.Port] = append(f.ports[s.Port], s)
	if f.all++; f.all <= most {
		return
	}
	greediest := s.Port
	for port, list := range f.ports {
		if len(list) > len(f.ports[greediest]) {
			greediest = port
		}
	}
	f.ports[greediest] = f.ports[greediest][:len(f.ports[greediest])-1]
	f.all--
}

// inTurns has one of each user and cgroup first, then another of each, and so on.
func inTurns(sockets []owner.Socket) []owner.Socket {
	type maker struct {
		uid    uint32
		cgroup uint64
	}
	turn, count := make(map[uint32]int, len(sockets)), make(map[maker]int)
	for _, s := range sockets {
		m := maker{s.UID, s.Cgroup}
		turn[s.Inode] = count[m]
		count[m]++
	}
	out := slices.Clone(sockets)
	slices.SortStableFunc(out, func(a, b owner.Socket) int { return cmp.Compare(turn[a.Inode], turn[b.Inode]) })
	return out
}

// holderOf is the process that is seen to hold the most of some connections.
func (r *listing) holderOf(sockets []owner.Socket) (most drainingServer, ok bool) {
	left := make(map[uint32]bool, len(sockets))
	for _, s := range sockets {
		left[s.Inode] = true
	}
	asked := 0
	for _, s := range sockets {
		if !left[s.Inode] {
			continue
		}
		if asked++; asked > mostHolders {
			break
		}
		found, _ := r.Sources.Owners.Find([]owner.Socket{s})
		p, known := found[s.Inode]
		if !known || p.ByThreadName {
			continue
		}
		count := 0
		err := r.Sources.Proc.SocketInodes(p.PID, func(inode uint32) {
			if left[inode] {
				count++
				delete(left, inode)
			}
		})
		if err != nil || count <= most.connected.Connections || !runs(r.Sources.Proc, p.PID) {
			continue
		}
		most = drainingServer{start: p.StartTime, connected: model.OtherProcess{PID: p.PID, Comm: model.Escape(p.Comm), Connections: count}}
	}
	return most, most.connected.Connections > 0
}

// runs means that a process is neither stopped nor frozen, nor has crashed: one that is serves nobody.
func runs(proc hostproc.FS, pid int) bool {
	if p, err := proc.Process(pid); err != nil || p.Stopped() || p.Dumping || p.Exited() {
		return false
	}
	f, err := cgroup.OpenFreezer(proc, pid)
	if err != nil { // there is none
		return true
	}
	defer f.Close()
	frozen, err := f.Frozen()
	return err == nil && !frozen
}
