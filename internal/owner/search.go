package owner

import (
	"cmp"
	"errors"
	iofs "io/fs"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// lowDescriptors are read in every likely process before the rest of any:
// a server opens its listeners when it starts, before it has connections.
const lowDescriptors = 256

// minThreads is less than any JVM has: the names of smaller processes' threads
// are not worth reading.
const minThreads = 8

// candidate is a process that may own a socket.
type candidate struct {
	hostproc.Stat
	pid  int
	uid  uint32 // the effective one
	net  uint64 // its network namespace, 0 when unknown
	rank int
}

// Ranks, the likeliest first.
const (
	rankHint    = iota // held one of the sockets before
	rankNamed          // the socket's user, and a thread is named after its port
	rankJVM            // the socket's user, and called java
	rankUser           // the socket's user
	rankForeign        // anybody else: the socket was inherited or passed on
)

// searchIn looks for the sockets among the processes and, for what is left,
// among the thread names of those that could not be read. What listens in a container's network
// namespace is looked for among the processes of that namespace first.
func (r *round) searchIn(sockets map[uint32]Socket, pids []int) {
	if inside, nets := r.contained(sockets); len(inside) > 0 {
		r.searchRanked(inside, slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !nets[r.netOf(pid)] }))
		sockets = maps.Clone(sockets)
		maps.DeleteFunc(sockets, func(inode uint32, _ Socket) bool { _, ok := r.found[inode]; return ok })
	}
	denied, left := r.searchRanked(sockets, pids)
	r.settle(sockets)
	if left > 0 {
		r.searchNames(sockets, denied)
	}
}

// contained are the sockets of other network namespaces than that of process 1, and those namespaces. In its
// own one an older process may hold a socket for a service that has a namespace of its own.
func (r *round) contained(sockets map[uint32]Socket) (inside map[uint32]Socket, nets map[uint64]bool) {
	inside, nets = map[uint32]Socket{}, map[uint64]bool{}
	home := r.netOf(1)
	for inode, s := range sockets {
		if net := cmp.Or(s.Net, r.net); home != 0 && net != 0 && net != home {
			inside[inode], nets[net] = s, true
		}
	}
	return inside, nets
}

// searchRanked searches the likeliest processes first, until every socket has an owner. It returns the
// processes that could not be read, and how many sockets are left.
func (r *round) searchRanked(sockets map[uint32]Socket, pids []int) (denied []*candidate, left int) {
	left = len(sockets)
	if left == 0 {
		return nil, 0
	}
	candidates := r.candidates(sockets, pids)
	for len(candidates) > 0 && left > 0 {
		n := slices.IndexFunc(candidates, func(c *candidate) bool { return c.rank != candidates[0].rank })
		if n < 0 {
			n = len(candidates)
		}
		var refused []*candidate
		left, refused = r.searchRank(sockets, candidates[:n], left)
		denied = append(denied, refused...)
		candidates = candidates[n:]
	}
	return denied, left
}

// netOf is a process's network namespace, 0 when unknown.
func (r *round) netOf(pid int) uint64 {
	net, ok := r.nets[pid]
	if !ok {
		net, _ = r.f.proc.NetID(pid)
		r.nets[pid] = net
	}
	return net
}

// searchRank searches equally likely processes: at the low descriptors of each,
// then at the others.
func (r *round) searchRank(sockets map[uint32]Socket, candidates []*candidate, left int) (int, []*candidate) {
	type rest struct {
		c    *candidate
		from int
	}
	var more []rest
	var denied []*candidate
	for _, c := range candidates {
		if left == 0 {
			return 0, denied
		}
		next, err := r.descriptors(sockets, c, 0, lowDescriptors, &left)
		switch {
		case err != nil:
			if r.deny(c, err) {
				denied = append(denied, c)
			}
		case next > 0:
			more = append(more, rest{c, next})
		}
	}
	for _, m := range more {
		if left == 0 {
			return 0, denied
		}
		// It was readable a moment ago: it has ended, or the rest does not matter.
		_, _ = r.descriptors(sockets, m.c, m.from, 0, &left)
	}
	return left, denied
}

// descriptors reads up to limit descriptors, beginning with from; next is
// where to continue, 0 at the end.
func (r *round) descriptors(sockets map[uint32]Socket, c *candidate, from, limit int, left *int) (next int, err error) {
	next, err = r.f.proc.SocketFiles(c.pid, from, limit, func(fd int, inode uint32) bool {
		if s, ok := sockets[inode]; ok {
			if _, done := r.found[inode]; !done && r.consider(inode, s, c, fd) {
				*left--
			}
		}
		return *left > 0
	})
	if err == nil {
		delete(r.f.denied, c.pid)
	}
	return next, err
}

// deny keeps a process that may not be read; one that has ended does not count.
func (r *round) deny(c *candidate, err error) bool {
	if errors.Is(err, hostproc.ErrNoProcess) || errors.Is(err, iofs.ErrNotExist) {
		return false
	}
	r.f.denied[c.pid] = Denied{PID: c.pid, Comm: c.Comm, UID: c.uid, Err: err}
	return true
}

// dropDenied forgets the processes that have ended, and notes whether there
// are some that cannot even be listed.
func (f *Finder) dropDenied() {
	for pid := range f.denied {
		if !f.pids.alive(pid) {
			delete(f.denied, pid)
		}
	}
	if f.proc.Hidden() {
		f.denied[0] = Denied{Err: hostproc.ErrInvisible}
	}
}

// candidates ranks the processes; among equals those of the sockets' network
// namespaces come first, then the oldest.
func (r *round) candidates(sockets map[uint32]Socket, pids []int) []*candidate {
	w := r.newWanted(sockets)
	list := make([]*candidate, 0, len(pids))
	for _, pid := range pids {
		if c := r.candidate(pid, w); c != nil {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(a.rank, b.rank),
			cmp.Compare(w.elsewhere(a), w.elsewhere(b)),
			cmp.Compare(a.StartTime, b.StartTime),
			cmp.Compare(a.pid, b.pid),
		)
	})
	return list
}

func (w wanted) elsewhere(c *candidate) int {
	if c.net == 0 || w.nets[0] || w.nets[c.net] {
		return 0
	}
	return 1
}

// candidate reads what any user may read of a process; nil when it has ended.
func (r *round) candidate(pid int, w wanted) *candidate {
	uid, err := r.f.proc.EffectiveUID(pid)
	st := r.stat(pid)
	if err != nil || st == nil || st.Exited {
		return nil
	}
	c := &candidate{Stat: *st, pid: pid, uid: uid, net: r.netOf(pid)}
	c.rank = r.rank(c, w)
	return c
}

func (r *round) rank(c *candidate, w wanted) int {
	if _, ok := r.hints[c.pid]; ok {
		return rankHint
	}
	if !w.uids[c.uid] {
		return rankForeign
	}
	if c.Threads >= minThreads && r.namedForPort(c.pid, w) {
		return rankNamed
	}
	if model.IsJVM(c.Comm) {
		return rankJVM
	}
	return rankUser
}

// namedForPort looks for a thread of a pool on one of the wanted ports.
func (r *round) namedForPort(pid int, w wanted) bool {
	named := false
	_ = r.f.proc.ThreadNames(pid, func(_ int, comm string) {
		port, known, ok := poolPort(comm)
		named = named || ok && known && w.ports[port]
	})
	return named
}

// wanted are the users, ports and network namespaces of the sockets searched for.
type wanted struct {
	uids  map[uint32]bool
	ports map[uint16]bool
	nets  map[uint64]bool // 0 when one is unknown
}

func (r *round) newWanted(sockets map[uint32]Socket) wanted {
	w := wanted{uids: map[uint32]bool{}, ports: map[uint16]bool{}, nets: map[uint64]bool{}}
	for _, s := range sockets {
		w.uids[s.UID] = true
		w.ports[s.Port] = true
		w.nets[cmp.Or(s.Net, r.net)] = true
	}
	return w
}

// search looks for what memory could not answer.
func (r *round) search() {
	if len(r.fresh)+len(r.stale) == 0 {
		return
	}
	r.net, _ = r.f.proc.NetID(hostproc.CallingThread) // 0 where proc is another pid namespace's
	pids, _ := r.f.proc.PIDs()
	r.f.pids.update(pids)
	r.f.dropDenied()
	if len(r.fresh) > 0 {
		begin := r.f.now()
		r.searchIn(r.fresh, pids)
		end := r.f.now()
		r.note(r.fresh, end.Add(max(retryAfter, restRatio*end.Sub(begin))))
	}
	if len(r.stale) > 0 {
		r.searchIn(r.stale, r.newPIDs(pids))
		r.note(r.stale, time.Time{})
	}
}

// newPIDs are the processes that not every stale socket was searched for in.
func (r *round) newPIDs(pids []int) []int {
	seen := r.f.pids.number
	for inode := range r.stale {
		seen = min(seen, r.f.missing[inode].seen)
	}
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return r.f.pids.first[pid] <= seen })
}

// pidLog numbers processes in the order in which they were first seen.
type pidLog struct {
	first  map[int]int // by pid
	number int
}

// update takes the pids of now and forgets the others.
func (l *pidLog) update(pids []int) {
	next := make(map[int]int, len(pids))
	for _, pid := range pids {
		n, ok := l.first[pid]
		if !ok {
			l.number++
			n = l.number
		}
		next[pid] = n
	}
	l.first = next
}

func (l *pidLog) alive(pid int) bool {
	_, ok := l.first[pid]
	return ok
}
