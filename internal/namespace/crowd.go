package namespace

import (
	"math"
	"slices"
)

const (
	// mostListeners is how many listeners of all namespaces together are read, beside those that are watched or asked for: a process
	// can have as many as it may open files, which in a container is often a million.
	mostListeners = 8192
	// leastListeners are read of each namespace, however many there are.
	leastListeners = 20
	// mostAsked more are kept of each namespace because somebody asks for their port: one can be listened on at 16 million
	// addresses of the loopback.
	mostAsked = 200
	// mostUsers is how many users have a count of their own; all others share one.
	mostUsers = 1024
)

// crowds are how many listeners each namespace has; how many of each are read follows from that. Who uses them has the turn.
type crowds struct {
	of      map[uint64]int
	all     int
	dumping int // namespaces whose samples take dumps
}

// most is how many of a namespace are read now: as many as there is room for, or an equal share.
func (c *crowds) most(id uint64) int {
	before := c.of[id]
	if room := mostListeners - (c.all - before); room > max(before, mostListeners/2) {
		return room
	}
	counts := []int{math.MaxInt}
	for other, n := range c.of {
		if other != id {
			counts = append(counts, n)
		}
	}
	return max(leastListeners, level(counts, mostListeners))
}

// note takes in how many listeners a namespace has: 0 when it is left.
func (c *crowds) note(id uint64, n int) {
	if c.of == nil {
		c.of = make(map[uint64]int)
	}
	c.all += n - c.of[id]
	if c.of[id] = n; n == 0 {
		delete(c.of, id)
	}
}

// level is the limit for each of the counts with which their sum is at most that.
func level(counts []int, most int) int {
	slices.Sort(counts)
	for i, n := range counts {
		if equal := most / (len(counts) - i); n > equal {
			return equal
		}
		most -= n
	}
	return most
}

// crowd is what a dump keeps of a namespace's listeners.
type crowd struct {
	most  int            // that are kept
	each  int            // of one user; 0 where all of the dump before were kept
	total int            // that there are
	users map[uint32]int // of these, by user
	asked int            // that are kept for that alone
}

// begin begins a dump.
func (c *crowd) begin() {
	c.total, c.asked = 0, 0
	clear(c.users)
}

// admits counts a listener of a user, and reports whether it is kept; others are kept already.
func (c *crowd) admits(user uint32, others int) bool {
	if c.users == nil {
		c.users = make(map[uint32]int)
	}
	if _, known := c.users[user]; !known && len(c.users) >= mostUsers {
		user = ^uint32(0) // nobody's
	}
	c.total++
	c.users[user]++
	if c.each == 0 {
		return others < c.most
	}
	return others < 2*c.most && c.users[user] <= c.each // what is watched is of somebody's share, too
}

// end sets how many of each user the next dump keeps.
func (c *crowd) end() {
	if c.each = 0; c.total > c.most {
		var counts []int
		for _, n := range c.users {
			counts = append(counts, n)
		}
		c.each = level(counts, c.most)
	}
}
