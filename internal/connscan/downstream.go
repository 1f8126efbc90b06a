package connscan

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

const (
	// restful is how often a namespace without waiting requests has its outgoing
	// connections read: often enough to know what is in flight at rest.
	restful = 10 * time.Second
	// pressing is how many of the threads must be busy for them to be read each
	// time.
	pressing = 0.5
	// pressingVirtual is how many requests must be in service on virtual threads for it,
	// of which there is no share to be busy.
	pressingVirtual = 20
	// pressedPart is the part of a core that walks with outgoing connections may take
	// then: on a host with a million of them each takes some tenths of a second.
	pressedPart = 0.02
	// maxOpenFiles is how many files of workers' system calls stay open while their
	// processes are strained, at a page of the kernel's memory each.
	maxOpenFiles = 1024
)

// outgoingMemory is what the walker knows of the outgoing connections. It is the
// walker's own.
type outgoingMemory struct {
	scan      downstream.Scan
	last      map[uint64]lastScan // by namespace
	processes map[hostproc.ProcessKey]*process
	latest    map[uint64]hostproc.ProcessKey // by namespace, whose descriptors were read last

	room threads.Room // for the files of workers

	watched, wanted sockdiag.Ports // of the walk under way
}

// lastScan is the latest scan of a namespace's outgoing connections.
type lastScan struct {
	at   time.Time
	cost time.Duration // of CPU time, of the walk that took them along
}

// rest is how long the next one waits at least.
func (s lastScan) rest() time.Duration {
	return min(restful, max(facts.Apart, time.Duration(float64(s.cost)/pressedPart)))
}

// process is one process with outgoing connections.
type process struct {
	memory      downstream.Memory
	descriptors descriptors
	workers     *threads.Workers
	workersErr  error
}

// process is what is remembered of a process.
func (o *outgoingMemory) process(key hostproc.ProcessKey) *process {
	h := o.processes[key]
	if h == nil {
		h = &process{}
		o.processes[key] = h
	}
	return h
}

func newOutgoingMemory() outgoingMemory {
	return outgoingMemory{last: make(map[uint64]lastScan), processes: make(map[hostproc.ProcessKey]*process), latest: make(map[uint64]hostproc.ProcessKey), room: threads.Room{Files: maxOpenFiles}}
}

// needsOutgoing reports whether the next walk is to take outgoing connections along.
func (s *Scanner) needsOutgoing(watched []*facts.Watched, netns uint64, now time.Time) bool {
	last, ok := s.peers.last[netns]
	if !ok || now.Sub(last.at) >= restful {
		return true
	}
	return now.Sub(last.at) >= last.rest() && s.Pressed(watched)
}

// Pressed reports whether requests wait at some listener, or half of its threads are
// busy. That is trouble even while the accept queue is empty.
func (s *Scanner) Pressed(watched []*facts.Watched) bool {
	for _, e := range watched {
		if list := s.store.Connections(e.ID); pressed(&list, e.Connector) {
			return true
		}
	}
	return false
}

// GivesUp reports whether many clients of some listener have closed lately before they had an answer.
func (s *Scanner) GivesUp(watched []*facts.Watched) bool {
	for _, e := range watched {
		list := s.store.Connections(e.ID)
		if last, ok := list.Last(); ok && last.Value.GivesUp(e.Connector) {
			return true
		}
	}
	return false
}

// pressed reports whether requests wait, half of the threads are busy, or clients of the namespace itself have no answer.
func pressed(list *facts.Recent[*connections.Found], c *model.Connector) bool {
	last, ok := list.Last()
	return ok && (presses(last.Value, c) || last.Value.Counts.LocalTrying > 0)
}

func presses(f *connections.Found, c *model.Connector) bool {
	if f.Queued > 0 || f.Counts.Phases[model.Waiting] > 0 {
		return true
	}
	if c != nil && c.VirtualThreads != nil && c.VirtualThreads.Value {
		return f.Counts.Phases[model.InService] >= pressingVirtual
	}
	return c != nil && c.MaxThreads != nil && float64(f.Counts.Phases[model.InService]) >= pressing*float64(c.MaxThreads.Value)
}

// servedPorts are the ports of a namespace on which something listens.
func servedPorts(r *facts.Watchlist, netns uint64) map[uint16]bool {
	out := make(map[uint16]bool)
	for _, c := range r.All {
		if c.ID.NetNS == netns {
			out[c.Port()] = true
		}
	}
	return out
}

// holding reads the descriptors of the watched processes of a namespace, no more than mostDescriptors of all: the processes take
// turns, and of whom it is not the turn the latest ones stand, which are not of this moment.
func (s *Scanner) holding(r *facts.Watchlist, netns uint64, at time.Time) *ownedSockets {
	out := &ownedSockets{fresh: true}
	left := s.mostDescriptors
	owners := r.Owners()
	full := false
	for _, key := range ownersFrom(r, netns, s.peers.latest[netns]) {
		d := &s.peers.process(key).descriptors
		fresh := false
		if !full && d.due(at) {
			var read int
			if read, fresh = d.refresh(s.proc, key.PID, at, s.now, left, s.mostDescriptors); fresh {
				s.peers.latest[netns] = key
			}
			left -= read
			full = !fresh || left <= 0
		} else if d.at.IsZero() {
			d.err = errOthersDescriptors
		}
		out.fresh = fresh && out.fresh
		if d.err != nil {
			out.users = append(out.users, owners[key].Members[0].UID)
		}
		out.inodes = append(out.inodes, d.inodes...)
	}
	slices.Sort(out.inodes)
	return out
}

// sortOutgoing gives each watched process of a namespace its part of what was scanned.
func (s *Scanner) sortOutgoing(r *facts.Watchlist, netns uint64, at time.Time, found map[model.ListenerID]*connections.Found) {
	byUser := usersOf(r, netns)
	for key, e := range r.Owners() {
		if e.ID.NetNS != netns {
			continue
		}
		h := s.peers.process(key)
		uid := e.Members[0].UID
		list, alone := h.part(s.peers.scan.List, uid), byUser[uid] == 1
		if h.descriptors.err != nil && !alone {
			continue
		}
		var work *downstream.Work
		h.workersErr = nil
		if h.descriptors.err == nil && strained(r, key, found) {
			work = h.readWorkers(s, r, key, list)
		} else {
			h.workers.Rest()
		}
		list = withoutItself(list, watchedAt(r, key), work)
		work.Mark(list)
		out := h.memory.Next(at, list, s.inService(r, key, found, at))
		work.Fill(out)
		out.ByUser = h.descriptors.err != nil
		out.Partial = out.Partial || s.peers.scan.Partial
		s.store.PutDownstream(key, facts.Downstream{Value: out, Err: h.descriptors.err, WorkersErr: h.workersErr})
	}
}

// strained reports whether a process's threads are busy by what this walk found.
func strained(r *facts.Watchlist, key hostproc.ProcessKey, found map[model.ListenerID]*connections.Found) bool {
	for i := range r.Watched {
		e := &r.Watched[i]
		if k, ok := e.Process(); ok && k == key && found[e.ID] != nil && presses(found[e.ID], e.Connector) {
			return true
		}
	}
	return false
}

// usersOf are how many watched processes of a namespace each user has: where the
// descriptors cannot be read, the connections of the user of a single one are
// taken for its own.
func usersOf(r *facts.Watchlist, netns uint64) map[uint32]int {
	out := make(map[uint32]int)
	for _, e := range r.Owners() {
		if e.ID.NetNS == netns {
			out[e.Members[0].UID]++
		}
	}
	return out
}

// part are a process's own connections.
func (h *process) part(list []downstream.Connection, uid uint32) []downstream.Connection {
	out := make([]downstream.Connection, 0, 16)
	for i := range list {
		if has(h.descriptors.inodes, list[i].Inode) || h.descriptors.err != nil && list[i].UID == uid {
			out = append(out, list[i])
		}
	}
	return out
}

// watchedAt are the addresses of a process's watched listeners.
func watchedAt(r *facts.Watchlist, key hostproc.ProcessKey) (out []netip.AddrPort) {
	for i := range r.Watched {
		if k, ok := r.Watched[i].Process(); ok && k == key {
			out = append(out, r.Watched[i].ID.Address)
		}
	}
	return out
}

// withoutItself leaves out a process's connections to itself: those are its clients,
// which wait for its threads. Where threads of its own are seen to wait there, it
// calls itself, and they stay.
func withoutItself(list []downstream.Connection, local []netip.AddrPort, work *downstream.Work) []downstream.Connection {
	return slices.DeleteFunc(list, func(c downstream.Connection) bool {
		return c.Here && work.WaitsAt(c.Remote) == 0 && slices.ContainsFunc(local, func(a netip.AddrPort) bool {
			return a.Port() == c.Remote.Port() && (a.Addr().IsUnspecified() || a.Addr().Unmap() == c.Remote.Addr().Unmap())
		})
	})
}

// inService is how many requests a process's watched listeners are serving, nil
// where that cannot be seen.
func (s *Scanner) inService(r *facts.Watchlist, key hostproc.ProcessKey, found map[model.ListenerID]*connections.Found, at time.Time) *int {
	sum := 0
	for i := range r.Watched {
		e := &r.Watched[i]
		if k, ok := e.Process(); !ok || k != key {
			continue
		}
		f := found[e.ID]
		if f == nil || !f.Counts.Exact() {
			return nil
		}
		busy, known := (&model.Listener{Connector: s.figures.Current(e.ID, e.Connector, f, at), Connections: f.Behind(e.Connector)}).BusyThreads()
		if known != model.BusyIsKnown {
			return nil
		}
		sum += busy
	}
	return &sum
}

// Close closes what is kept open of the processes.
func (s *Scanner) Close() {
	for _, h := range s.peers.processes {
		h.workers.Rest()
	}
}

// retainProcesses forgets all but those of a list.
func (s *Scanner) retainProcesses(r *facts.Watchlist) {
	owners := r.Owners()
	for key := range s.peers.processes {
		if owners[key] == nil {
			s.peers.processes[key].workers.Rest()
			delete(s.peers.processes, key)
		}
	}
	for netns := range s.peers.last {
		if !r.Has(netns) {
			delete(s.peers.last, netns)
		}
	}
	maps.DeleteFunc(s.peers.latest, func(netns uint64, _ hostproc.ProcessKey) bool { return !r.Has(netns) })
}
