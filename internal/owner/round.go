package owner

import (
	"cmp"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// round is one call of Find.
type round struct {
	f     *Finder
	now   time.Time
	net   uint64                 // the calling thread's network namespace, 0 when unknown
	stats map[int]*hostproc.Stat // read once a round; nil for a process that has exited
	nets  map[int]uint64         // network namespaces of processes, read once a round
	found map[uint32]Process     // the result
	fresh map[uint32]Socket      // to be searched for in all processes
	stale map[uint32]Socket      // searched for lately: only new processes matter
	hints map[int]struct{}       // processes that held one of the fresh ones
	// strangers hold sockets that were made elsewhere: theirs if nobody else's.
	strangers map[uint32]holder
	proof     bool // every socket has a proven owner
}

func (f *Finder) newRound() *round {
	return &round{
		f: f, now: f.now(), proof: true,
		stats: map[int]*hostproc.Stat{},
		nets:  map[int]uint64{},
		found: map[uint32]Process{},
		fresh: map[uint32]Socket{},
		stale: map[uint32]Socket{},
		hints: map[int]struct{}{},

		strangers: map[uint32]holder{},
	}
}

// sort answers from memory or puts the socket on one of the lists.
func (r *round) sort(s Socket) {
	if s.Inode == 0 { // not a socket anybody holds
		return
	}
	if o := r.f.owners[s.Inode]; o != nil {
		o.asked = r.now
		if r.stillOwns(s.Inode, o) {
			r.found[s.Inode] = o.Process
			r.proof = r.proof && !o.ByThreadName
			return
		}
		r.hints[o.PID] = struct{}{}
		delete(r.f.owners, s.Inode)
	}
	m := r.f.missing[s.Inode]
	if m != nil {
		m.asked = r.now
		if r.now.Before(m.retry) {
			r.stale[s.Inode] = s
			return
		}
	}
	r.fresh[s.Inode] = s
}

// stillOwns takes one read of stat per process and one readlink per socket.
func (r *round) stillOwns(inode uint32, o *owned) bool {
	st := r.stat(o.PID)
	if st == nil || st.StartTime != o.StartTime {
		return false
	}
	o.Comm = st.Comm // execve keeps pid, start time and descriptors
	if o.ByThreadName {
		return r.now.Sub(o.found) < retryAfter
	}
	return r.f.at(o.PID, o.fd, inode)
}

func (r *round) stat(pid int) *hostproc.Stat {
	st, ok := r.stats[pid]
	if !ok {
		if got, err := r.f.proc.Stat(pid); err == nil {
			st = &got
		}
		r.stats[pid] = st
	}
	return st
}

// note remembers what stayed without an owner. A zero time leaves the time of
// the next full search as it was.
func (r *round) note(sockets map[uint32]Socket, retry time.Time) {
	for inode := range sockets {
		if _, ok := r.found[inode]; ok {
			delete(r.f.missing, inode)
			continue
		}
		r.proof = false
		m := r.f.missing[inode]
		if m == nil {
			m = &missed{}
			r.f.missing[inode] = m
		}
		m.asked, m.seen = r.now, r.f.pids.number
		if !retry.IsZero() {
			m.retry = retry
		}
	}
}

func (r *round) setOwner(inode uint32, c *candidate, fd int) {
	p := Process{PID: c.pid, Comm: c.Comm, StartTime: c.StartTime, ByThreadName: fd < 0}
	r.found[inode] = p
	r.f.owners[inode] = &owned{Process: p, fd: fd, found: r.now, asked: r.now}
	r.proof = r.proof && fd >= 0
}

// holder is a process that holds a socket, at a descriptor.
type holder struct {
	*candidate
	fd int
}

// consider gives a socket to a process that holds it, unless that is a stranger to it: then it is noted,
// and the answer is false.
func (r *round) consider(inode uint32, s Socket, c *candidate, fd int) bool {
	if !r.stranger(s, c) {
		r.setOwner(inode, c, fd)
		return true
	}
	if _, known := r.strangers[inode]; !known {
		r.strangers[inode] = holder{c, fd}
	}
	return false
}

// stranger reports whether a process in a container holds a socket that was not made there.
func (r *round) stranger(s Socket, c *candidate) bool {
	cgroup, container := r.f.containers(c.pid)
	return container && (!r.together(s, c) || cgroup != 0 && s.Cgroup != 0 && cgroup != s.Cgroup)
}

// together reports whether a process may be in a socket's network namespace.
func (r *round) together(s Socket, c *candidate) bool {
	net := cmp.Or(s.Net, r.net)
	return net == 0 || c.net == 0 || c.net == net
}

// settle gives the sockets that nobody else holds to strangers.
func (r *round) settle(sockets map[uint32]Socket) {
	for inode, h := range r.strangers {
		_, asked := sockets[inode]
		if _, found := r.found[inode]; asked && !found {
			r.setOwner(inode, h.candidate, h.fd)
		}
	}
}

// deniedList is empty when every socket has a proven owner.
func (r *round) deniedList() []Denied {
	if r.proof {
		return nil
	}
	list := make([]Denied, 0, len(r.f.denied))
	for _, d := range r.f.denied {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Denied) int { return cmp.Compare(a.PID, b.PID) })
	return list
}
