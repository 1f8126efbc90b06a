package observer

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
)

// identity tells the listener that stands at an address from one that stood
// there before it: a restart gives it other sockets, or (under socket
// activation) the same ones in another process.
type identity struct {
	inodes []uint32   // of its sockets, several under SO_REUSEPORT
	owner  processKey // zero while it is not known
	since  time.Time  // of the first scan that saw it
}

// meet takes note of who stands at the address in this scan. Of another
// listener, or another process, nothing holds that was seen of the one before.
func (a *account) meet(c *candidate, now time.Time) {
	if !a.same(c) {
		a.former = a.looks.last
		a.forget()
		a.identity = identity{inodes: a.inodes, since: now}
	}
	if c.owner != nil {
		a.owner = processKey{c.owner.PID, c.owner.StartTime}
	}
	a.inodes = a.inodes[:0]
	for i := range c.members {
		a.inodes = append(a.inodes, c.members[i].Inode)
	}
}

func (i *identity) same(c *candidate) bool {
	if c.owner != nil && i.owner != (processKey{}) && i.owner != (processKey{c.owner.PID, c.owner.StartTime}) {
		return false
	}
	for m := range c.members {
		if slices.Contains(i.inodes, c.members[m].Inode) {
			return true
		}
	}
	return false
}

// forget drops what was seen of a listener.
func (a *account) forget() {
	a.looks, a.hysteresis = looks{}, diagnosis.Hysteresis{}
}
