package connscan

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// strangersPart is the part of a core that the search for their processes may take.
	strangersPart = 0.01
	mostStrangers = 16_384
	// mostSearched is how many processes one search reads the descriptors of: of the owners'
	// names, and of others.
	mostSearched, mostOthersSearched = 16, 256
	// searchedPart is the part of what one search follows that one process may have.
	searchedPart = 4
)

// strangers are connections on watched ports that a process holds which does not listen
// there: of the server before, which has closed its listener and serves what it has. They
// take none of the listener's slots and threads.
type strangers struct {
	of       map[uint32]holder // by inode
	suspects []uint32          // held by no owner at the latest reading of descriptors, ascending
	searched time.Time
	cost     time.Duration
	latest   [2]int // by pass, the last process that was searched where not all were, else 0
}

type holder struct {
	pid  int
	comm string
}

// unheld are the accepted connections that no owner has a descriptor of, and that are
// not known to be a stranger's. One reading alone does not tell them from connections
// that were accepted after the descriptors were read, unless it is the first.
func (t *strangers) unheld(w *reading) (out []uint32) {
	first := t.searched.IsZero()
	suspects := t.suspects
	t.suspects = nil
	for _, inode := range w.accepted {
		if _, known := t.of[inode]; known || has(w.owned.inodes, inode) {
			continue
		}
		if len(t.suspects) < mostStrangers {
			t.suspects = append(t.suspects, inode)
		}
		if first || has(suspects, inode) {
			out = append(out, inode)
		}
	}
	return out
}

// search looks for the processes that hold such connections, in the network namespace: those of the same name as
// the owners, then others, of both those of the same users first. One that holds a listening socket, too,
// is a worker of the same server. No more than most descriptors are followed, and of a process a part of them; what was not reached
// is the beginning of the next search. It reports whether it has found any.
func (t *strangers) search(proc hostproc.FS, r *facts.Watchlist, netns uint64, at time.Time, unheld []uint32, most int) (found bool) {
	t.searched = at
	owners, names, users, home := make(map[int]bool), make(map[string]bool), make(map[uint32]bool), uint64(0)
	for key, e := range r.Owners() {
		if owners[key.PID] = true; e.ID.NetNS == netns {
			names[e.Owner.Comm] = true
			users[e.Members[0].UID] = true
			home, _ = proc.NetID(key.PID)
		}
	}
	var listening []uint32
	for _, e := range r.In(netns) {
		listening = append(listening, e.Inodes()...)
	}
	slices.Sort(listening)
	pids, err := proc.PIDs()
	if err != nil {
		return false
	}
	left := make(map[uint32]bool, len(unheld))
	for _, inode := range unheld {
		left[inode] = true
	}
	descriptors, part := most, most/searchedPart // each has its part or is not searched: a rest may end before what is looked for
	for i, pass := range []struct {
		named bool
		most  int
	}{{true, mostSearched}, {false, mostOthersSearched}} {
		order, latest := theirsFirst(proc, behind(pids, t.latest[i]), users), 0
		t.latest[i] = 0
		for _, pid := range order {
			if len(left) == 0 {
				return found
			}
			stat, err := proc.Stat(pid)
			if owners[pid] || err != nil || names[stat.Comm] != pass.named || stat.Exited {
				continue
			}
			if net, err := proc.NetID(pid); err == nil && net != home || err != nil && !pass.named {
				continue
			}
			if pass.most--; pass.most < 0 || descriptors < part {
				t.latest[i] = latest
				break
			}
			latest = pid
			some, read := t.takeSocketsOf(proc, pid, stat.Comm, left, listening, part)
			descriptors -= read
			found = some || found
		}
	}
	return found
}

// behind are processes in order, beginning behind one of them.
func behind(pids []int, latest int) []int {
	slices.Sort(pids)
	at, found := slices.BinarySearch(pids, latest)
	if found {
		at++
	}
	return slices.Concat(pids[at:], pids[:at])
}

// theirsFirst are the processes, those of some users in front: who else has many is not searched before the server that was there
// before.
func theirsFirst(proc hostproc.FS, pids []int, users map[uint32]bool) []int {
	var theirs, others []int
	for _, pid := range pids {
		if uid, err := proc.EffectiveUID(pid); err == nil && users[uid] {
			theirs = append(theirs, pid)
		} else {
			others = append(others, pid)
		}
	}
	return append(theirs, others...)
}

// takeSocketsOf takes those that a process holds, and says how many descriptors it has followed. Whose cannot be read, or not all, is
// not known to be a stranger's.
func (t *strangers) takeSocketsOf(proc hostproc.FS, pid int, comm string, left map[uint32]bool, listening []uint32, most int) (some bool, read int) {
	var inodes []uint32
	listens := false
	read, err := proc.SocketInodesOf(pid, most, func(inode uint32) {
		listens = listens || has(listening, inode)
		if left[inode] {
			inodes = append(inodes, inode)
		}
	})
	if errors.Is(err, hostproc.ErrManyDescriptors) {
		return false, read
	}
	for _, inode := range inodes {
		delete(left, inode)
		if !listens && len(t.of) < mostStrangers {
			t.of[inode] = holder{pid, comm}
		}
	}
	return !listens && len(inodes) > 0, read
}

// retain forgets those that have closed.
func (t *strangers) retain(w *reading) {
	maps.DeleteFunc(t.of, func(inode uint32, _ holder) bool { return !has(w.accepted, inode) })
}

// settle finds out whose connections a walk has found that the owners do not hold, and
// reports whether some turned out to be strangers', so that they have to be counted again.
func (t *strangers) settle(s *Scanner, r *facts.Watchlist, netns uint64, w *reading) (found bool) {
	if w.owned == nil || !w.owned.fresh || !w.owned.complete() || !ownersKnown(r, netns) {
		return false
	}
	slices.Sort(w.accepted)
	t.retain(w)
	unheld := t.unheld(w)
	if len(unheld) == 0 || !t.searched.IsZero() && w.at.Sub(t.searched) < cputime.Rest(t.cost, time.Second, strangersPart) {
		if t.searched.IsZero() {
			t.searched = w.at
		}
		return false
	}
	t.cost, _ = cputime.Of(func() error {
		found = t.search(s.proc, r, netns, w.at, unheld, s.mostDescriptors)
		return nil
	})
	return found
}

// ownersKnown: the watched listeners of a namespace have one owner each. Members of a
// group (SO_REUSEPORT) are processes that all listen.
func ownersKnown(r *facts.Watchlist, netns uint64) bool {
	for _, e := range r.In(netns) {
		if _, ok := e.Process(); !ok || len(e.Members) > 1 {
			return false
		}
	}
	return true
}

// largest is the process with the most of them.
func largest(of map[int]*model.OtherProcess) *model.OtherProcess {
	if len(of) == 0 {
		return nil
	}
	return slices.MaxFunc(slices.Collect(maps.Values(of)), func(a, b *model.OtherProcess) int {
		return cmp.Or(cmp.Compare(a.Connections, b.Connections), cmp.Compare(b.PID, a.PID))
	})
}
