package watchlist

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// owners are the processes that hold the listening sockets.
type owners struct {
	byInode  map[uint32]owner.Process
	searched map[int]bool // named processes whose descriptors could be read
	denied   []owner.Denied
}

// findOwners asks for the owners of the listeners that may be wanted. A process
// named by --pid owns what it holds, though others may hold it too.
func findOwners(r *listing) *owners {
	o := &owners{byInode: make(map[uint32]owner.Process), searched: make(map[int]bool)}
	if r.Sources.Owners == nil {
		return o
	}
	for _, pid := range r.rules.PIDs() {
		o.searched[pid] = o.owns(pid, r)
	}
	// Of all namespaces at once: a search reads every process.
	found, denied := r.Sources.Owners.Find(o.unowned(r))
	o.denied = denied
	maps.Copy(o.byInode, found)
	for _, c := range r.all {
		o.assign(c)
	}
	return o
}

// assign says whose a listener is. Of several sockets that share the address it is the process that is running
// for longest, which stays the same when others come, or one of its cgroup that is alone in trouble: any
// process of the user may join the address and fill its own queue.
func (o *owners) assign(c *Candidate) {
	var first *sockdiag.Listener
	pids := make([]int, 0, 1)
	for i := range c.Members {
		m := &c.Members[i]
		p, ok := o.byInode[m.Inode]
		if !ok {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(p.StartTime, c.Owner.StartTime), cmp.Compare(p.PID, c.Owner.PID)) < 0 {
			first, c.Owner = m, &p
		}
		if !slices.Contains(pids, p.PID) {
			pids = append(pids, p.PID)
		}
	}
	c.Processes = len(pids)
	for i := range c.Members {
		m := &c.Members[i]
		if p, ok := o.byInode[m.Inode]; ok && m.Inode == alone(c) && m.Cgroup == first.Cgroup {
			c.Owner = &p
		}
	}
}

// alone is, of several sockets that share the address, the one in whose queue clients wait
// while nobody waits in the others': its process is the one in trouble. 0 where there is none.
func alone(c *Candidate) (inode uint32) {
	for i := range c.Members {
		if c.Members[i].RecvQ == 0 {
			continue
		}
		if inode != 0 {
			return 0
		}
		inode = c.Members[i].Inode
	}
	return inode
}

// unowned are the listening sockets whose owner is still to be found.
func (o *owners) unowned(r *listing) (out []owner.Socket) {
	for _, c := range r.all {
		if !r.rules.MaySelect(c) {
			continue
		}
		for i := range c.Members {
			m := &c.Members[i]
			if _, known := o.byInode[m.Inode]; !known {
				out = append(out, owner.Socket{Inode: m.Inode, Port: c.Port(), UID: m.UID, Cgroup: m.Cgroup, Net: r.Lister.Namespaces.Find(c.ID.NetNS).Net})
			}
		}
	}
	return out
}

// owns takes the listeners that a named process holds; false where its
// descriptors may not be read, and Find may know it by its threads' names. One
// that has ended holds none.
func (o *owners) owns(pid int, r *listing) bool {
	var inodes []uint32
	for _, c := range r.all {
		if r.rules.MayBe(pid, c) {
			inodes = append(inodes, c.Inodes()...)
		}
	}
	found, err := r.Sources.Owners.OwnedBy(pid, inodes)
	maps.Copy(o.byInode, found)
	return err == nil || errors.Is(err, hostproc.ErrNoProcess)
}

// sayOwners names the watched listeners whose owner could not be found, and what
// discovery could not read.
func (r *listing) sayOwners(denied []owner.Denied) {
	for _, c := range r.watched {
		if c.Owner == nil {
			r.miss.Add(noOwner(c, denied))
			continue
		}
		if c.Owner.ByThreadName {
			r.miss.Add(model.Unavailable{
				What: fmt.Sprintf("descriptors of pid %d", c.Owner.PID),
				Why:  "permission denied; the owner of " + c.ID.String() + " is known by its threads' names only",
				How:  fmt.Sprintf("run as uid %d with the same gid, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", c.Members[0].UID),
			})
		}
		r.miss.Add(c.Unavailable...)
	}
}

// noOwner says why a listener has no owner: a process that may not be read may
// be it, or it lives where this /proc does not reach.
func noOwner(c *Candidate, denied []owner.Denied) model.Unavailable {
	u := model.Unavailable{
		What: "owner of " + c.ID.String(),
		Why:  "no process in this /proc holds its socket",
		How:  "run in the pid namespace of the server (in Kubernetes: shareProcessNamespace, or hostPID)",
	}
	if len(denied) > 0 {
		u.Why = "permission denied on the descriptors of its process"
		if denied[0].PID == 0 { // not one process, but all (hostproc.ErrInvisible)
			u.Why = "its process is hidden: /proc is mounted with hidepid"
		}
		u.How = fmt.Sprintf("run as uid %d with the same gid, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", c.Members[0].UID)
	}
	return u
}
