package connscan

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// descriptorsPart is the part of a core that reading descriptors may take.
const descriptorsPart = 0.02

// descriptors are the sockets that a process has descriptors of.
type descriptors struct {
	at     time.Time
	cost   time.Duration
	inodes []uint32 // ascending
	before []uint32 // whose memory is used again
	err    error
}

// errOthersDescriptors is of a process that was never read, as others have taken what there is for all.
var errOthersDescriptors = errors.New("not looked at yet, as other servers of the network namespace have too many open files")

// due reports whether it is time to read them.
func (d *descriptors) due(at time.Time) bool {
	return d.at.IsZero() || at.Sub(d.at) >= cputime.Rest(d.cost, 0, descriptorsPart)
}

// refresh reads them and returns how many descriptors it has followed. ok is false where there are more than left, which others
// have taken: the latest ones stand. Of a process with more than most none is known.
func (d *descriptors) refresh(proc hostproc.FS, pid int, at time.Time, clock func() time.Time, left, most int) (read int, ok bool) {
	start := clock()
	inodes := d.before[:0]
	read, err := proc.SocketInodesOf(pid, left, func(inode uint32) { inodes = append(inodes, inode) })
	if errors.Is(err, hostproc.ErrManyDescriptors) {
		if left < most {
			if d.at.IsZero() {
				d.err = errOthersDescriptors
			}
			return read, false
		}
		inodes = nil
	}
	slices.Sort(inodes)
	d.inodes, d.before, d.err = inodes, d.inodes, err
	d.at, d.cost = at, clock().Sub(start)
	if errors.Is(d.err, hostproc.ErrNoProcess) {
		d.err = nil
	}
	return read, true
}

// ownedSockets tells the outgoing connections of the watched processes of a namespace from
// those of all others.
type ownedSockets struct {
	inodes []uint32 // ascending
	users  []uint32 // of the processes whose descriptors cannot be read
	fresh  bool     // all of them are of this moment
}

// has is true of every socket for nil.
func (h *ownedSockets) has(s *sockdiag.Socket) bool {
	if h == nil {
		return true
	}
	return has(h.inodes, s.Inode) || slices.Contains(h.users, s.UID)
}

// complete reports whether all their descriptors could be read.
func (h *ownedSockets) complete() bool { return len(h.users) == 0 }

// without are the sockets held that are in neither of two ascending lists, ascending.
func (h *ownedSockets) without(one, other []uint32) (out []uint32) {
	for _, inode := range h.inodes {
		if !has(one, inode) && !has(other, inode) {
			out = append(out, inode)
		}
	}
	return out
}

func has(ascending []uint32, inode uint32) bool {
	_, ok := slices.BinarySearch(ascending, inode)
	return ok
}

// ownersFrom are the owners of a namespace's listeners, beginning behind one of them.
func ownersFrom(r *facts.Watchlist, netns uint64, after hostproc.ProcessKey) []hostproc.ProcessKey {
	var out []hostproc.ProcessKey
	for key, e := range r.Owners() {
		if e.ID.NetNS == netns {
			out = append(out, key)
		}
	}
	order := func(a, b hostproc.ProcessKey) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.StartTime, b.StartTime))
	}
	slices.SortFunc(out, order)
	at, found := slices.BinarySearchFunc(out, after, order)
	if found {
		at++
	}
	return append(out[at:len(out):len(out)], out[:at]...)
}
