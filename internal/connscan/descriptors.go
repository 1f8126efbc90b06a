package connscan

import (
	"errors"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
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
	err    error
}

// refresh reads them, if it is time, and reports whether they are of this moment.
func (d *descriptors) refresh(proc hostproc.FS, pid int, at time.Time, clock func() time.Time) bool {
	if !d.at.IsZero() && at.Sub(d.at) < cputime.Rest(d.cost, 0, descriptorsPart) {
		return false
	}
	start := clock()
	d.inodes = d.inodes[:0]
	d.err = proc.SocketInodes(pid, func(inode uint32) { d.inodes = append(d.inodes, inode) })
	slices.Sort(d.inodes)
	d.at, d.cost = at, clock().Sub(start)
	if errors.Is(d.err, hostproc.ErrNoProcess) {
		d.err = nil
	}
	return true
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
