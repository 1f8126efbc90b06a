package observer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
)

// findOwners asks for the owners of the listeners that may be wanted. A process
// named by --pid owns what it holds, though others may hold it too.
func (s *Sampler) findOwners(sc *scan) {
	owners := make(map[uint32]owner.Process)
	for _, pid := range s.chosen.pids() {
		sc.searched[pid] = s.heldBy(pid, sc.all, owners)
	}
	// Of all namespaces at once: a search reads every process.
	found, denied := s.src.Owners.Find(s.unowned(sc, owners))
	sc.denied = denied
	maps.Copy(owners, found)
	for _, c := range sc.all {
		for i := range c.members {
			if p, ok := owners[c.members[i].Inode]; ok && c.owner == nil {
				c.owner = &p
			}
		}
	}
}

// unowned are the listening sockets whose owner is still to be found.
func (s *Sampler) unowned(sc *scan, owners map[uint32]owner.Process) (out []owner.Socket) {
	for _, c := range sc.all {
		if !s.mayWant(c) {
			continue
		}
		for i := range c.members {
			m := &c.members[i]
			if _, known := owners[m.Inode]; !known {
				out = append(out, owner.Socket{Inode: m.Inode, Port: c.port(), UID: m.UID, Net: c.space.net})
			}
		}
	}
	return out
}

// heldBy takes the listeners that a named process holds; false where that may
// not be looked at, and Find may know it by its threads' names. One that has
// ended holds none.
func (s *Sampler) heldBy(pid int, all []*candidate, owners map[uint32]owner.Process) bool {
	var inodes []uint32
	for _, c := range all {
		if !s.mayBe(pid, c) {
			continue
		}
		for i := range c.members {
			inodes = append(inodes, c.members[i].Inode)
		}
	}
	held, err := s.src.Owners.Held(pid, inodes)
	maps.Copy(owners, held)
	return err == nil || errors.Is(err, owner.ErrGone)
}

// mayBe tells whether a listener is one of those that are wanted of a process,
// should it be its.
func (s *Sampler) mayBe(pid int, c *candidate) bool {
	return slices.ContainsFunc(s.chosen.selectors, func(sel selector) bool { return sel.pid == pid && s.mayMatch(sel, c) })
}

// lookAtOwners reads each kept process once, and names the listeners whose
// owner could not be found.
func (s *Sampler) lookAtOwners(sc *scan) {
	for _, c := range sc.kept {
		if c.owner == nil {
			sc.miss.add(noOwner(c, sc.denied))
			continue
		}
		if c.owner.ByThreadName {
			sc.miss.add(model.Unavailable{
				What: fmt.Sprintf("descriptors of pid %d", c.owner.PID),
				Why:  "permission denied; the owner of " + c.id.String() + " is known by its threads' names only",
				How:  fmt.Sprintf("run as uid %d with the same gid, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", c.members[0].UID),
			})
		}
		if _, done := sc.processes[c.owner.PID]; !done {
			for _, u := range sc.unread[c.owner.PID] {
				sc.miss.add(u)
			}
			sc.processes[c.owner.PID] = s.lookAtProcess(c.owner, &sc.miss)
		}
	}
	s.forgetProcesses(sc)
}

// noOwner says why a listener has no owner: a process that may not be read may
// be it, or it lives where this /proc does not reach.
func noOwner(c *candidate, denied []owner.Denied) model.Unavailable {
	u := model.Unavailable{
		What: "owner of " + c.id.String(),
		Why:  "no process in this /proc holds its socket",
		How:  "run in the pid namespace of the server (in Kubernetes: shareProcessNamespace, or hostPID)",
	}
	if len(denied) > 0 {
		u.Why = "permission denied on the descriptors of its process"
		if denied[0].PID == 0 { // not one process, but all (owner.ErrInvisible)
			u.Why = "its process is hidden: /proc is mounted with hidepid"
		}
		u.How = fmt.Sprintf("run as uid %d with the same gid, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", c.members[0].UID)
	}
	return u
}
