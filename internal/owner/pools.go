package owner

import (
	"cmp"
	"slices"
)

// searchNames gives the sockets that are left to processes by their thread
// names. A process is only considered for sockets of its own user and of its own
// network namespace.
func (r *round) searchNames(sockets map[uint32]Socket, denied []*candidate) {
	pools := make(map[*candidate]pool, len(denied))
	for inode, s := range sockets {
		if _, done := r.found[inode]; done {
			continue
		}
		if c := r.byName(s, denied, pools); c != nil {
			r.own(inode, c, -1)
		}
	}
}

// together reports whether a process may be in a socket's network namespace.
func (r *round) together(s Socket, c *candidate) bool {
	net := cmp.Or(s.Net, r.net)
	return net == 0 || c.net == 0 || c.net == net
}

// byName prefers a thread that names the port. Where the names have lost it,
// the command line may name it; or the process is the only one of its user
// that could not be read. Otherwise the owner stays unknown.
func (r *round) byName(s Socket, denied []*candidate, pools map[*candidate]pool) *candidate {
	var lost []*candidate
	ofUser := 0
	for _, c := range denied {
		if c.uid != s.UID || !r.together(s, c) {
			continue
		}
		ofUser++
		p, ok := pools[c]
		if !ok {
			p = r.pool(c.pid)
			pools[c] = p
		}
		if p.ports[s.Port] {
			return c // they are in order of age
		}
		if p.lost {
			lost = append(lost, c)
		}
	}
	for _, c := range lost {
		if ofUser == 1 || slices.Contains(r.f.numbers(c.pid, c.StartTime), s.Port) {
			return c
		}
	}
	return nil
}

// pool is what a process's thread names say of its connectors.
type pool struct {
	ports map[uint16]bool
	lost  bool // of some the port is not known
}

func (r *round) pool(pid int) pool {
	p := pool{ports: map[uint16]bool{}}
	_ = r.f.proc.ThreadNames(pid, func(_ int, comm string) {
		port, known, ok := poolPort(comm)
		if known {
			p.ports[port] = true
		}
		p.lost = p.lost || ok && !known
	})
	return p
}
