package watchlist

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// elsewhereEvery bounds how often other namespaces are asked for a port that is missed.
	elsewhereEvery = 10 * time.Second
	// mostElsewhere is of how many servers of other namespaces a note speaks.
	mostElsewhere = 3
	// elsewherePart is the part of all that is followed that one process of other namespaces may have.
	elsewherePart = 8
	// javaComm is the name of a JVM's main thread.
	javaComm = "java"
)

// elsewhere are the servers of network namespaces that nobody asked for, where something is
// missed in the one that was: `--port 8080` on the host of a container is a classic mistake.
// Any user may know that a process is in another namespace, and what listens there; who
// holds the socket takes the rights to its descriptors, else a JVM there is taken for it.
type elsewhere struct {
	at    time.Time
	cost  time.Duration
	found []model.Elsewhere // by port, one of each namespace

	served []*model.Elsewhere // of the latest list: those of missed ports
	javas  []*model.Elsewhere // and the JVMs of which a note speaks
}

// search searches again where that is due.
func (e *elsewhere) search(r *listing) {
	if !e.at.IsZero() && r.At.Sub(e.at) < cputime.Rest(e.cost, elsewhereEvery, searchPart) {
		return
	}
	e.at = r.At
	e.cost, _ = cputime.Of(func() error {
		e.found = nil
		left := hostproc.MostDescriptors
		for _, pids := range strangers(r.Sources.Proc) {
			e.found = append(e.found, listenersOf(r.Sources.Proc, pids, &left)...)
		}
		return nil
	})
	r.searched += e.cost
	slices.SortFunc(e.found, func(a, b model.Elsewhere) int { return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.PID, b.PID)) })
}

// strangers are the processes of each other network namespace.
func strangers(proc hostproc.FS) map[uint64][]int {
	here, err := proc.NetID(os.Getpid())
	pids, err2 := proc.PIDs()
	if err != nil || err2 != nil {
		return nil
	}
	out := make(map[uint64][]int)
	for _, pid := range pids {
		if id, err := proc.NetID(pid); err == nil && id != here {
			out[id] = append(out[id], pid)
		}
	}
	return out
}

// listenersOf are the ports of a namespace with the processes that hold them. left is how many descriptors may still be followed,
// of a process a part: the holders of the rest are not known.
func listenersOf(proc hostproc.FS, pids []int, left *int) (out []model.Elsewhere) {
	ports := make(map[uint32]uint16)
	for _, pid := range pids {
		if netstat.Listening(proc, pid, func(port uint16, inode uint32) { ports[inode] = port }) == nil {
			break
		}
	}
	java := 0
	holders := make(map[uint16]int)
	for _, pid := range pids {
		if len(holders) == len(ports) {
			break
		}
		if *left > 0 {
			read, _ := proc.SocketInodesOf(pid, min(*left, hostproc.MostDescriptors/elsewherePart), func(inode uint32) {
				if port, ok := ports[inode]; ok && holders[port] == 0 {
					holders[port] = pid
				}
			})
			*left -= read
		}
		if s, err := proc.Process(pid); err == nil && s.Comm == javaComm && java == 0 {
			java = pid
		}
	}
	for _, port := range slices.Compact(slices.Sorted(maps.Values(ports))) {
		e := model.Elsewhere{Port: port, PID: cmp.Or(holders[port], java)}
		if e.PID == 0 {
			e.PID = pids[0]
		} else if s, err := proc.Process(e.PID); err == nil {
			e.Comm = model.Escape(s.Comm)
		}
		out = append(out, e)
	}
	return out
}

// seekElsewhere says who serves a missed port in another network namespace, and where the
// JVMs are if none is here.
func (r *listing) seekElsewhere() {
	r.elsewhere.served, r.elsewhere.javas = nil, nil
	here := r.agentNamespace()
	if here == 0 || r.opt.AllNamespaces || r.Sources.Owners == nil {
		return
	}
	missed := func(t model.Target) bool { return !t.Up && t.NetNS == here }
	noTomcat := r.rules.Empty() && !slices.ContainsFunc(r.watched, func(c *Candidate) bool { return c.Discovered.Kind().Limits })
	if !slices.ContainsFunc(r.Targets, missed) && !noTomcat {
		return
	}
	e := &r.elsewhere
	e.search(r)
	for i := range r.Targets {
		t := &r.Targets[i]
		var there []model.Elsewhere // one of each namespace
		for _, f := range e.found {
			if f.Port == t.Port {
				there = append(there, f)
			}
		}
		if missed(*t) && len(there) > 0 {
			t.Elsewhere = new(there[0])
			t.Elsewhere.Others = len(there) - 1
			e.served = append(e.served, t.Elsewhere)
		}
	}
	if noTomcat {
		e.javas = javasOf(e.found)
	}
}

func (r *listing) agentNamespace() uint64 {
	for _, n := range r.Lister.Namespaces.All {
		if n.OfAgent {
			return n.ID
		}
	}
	return 0
}

// named are those whose pods' names are wanted.
func (e *elsewhere) named() []*model.Elsewhere {
	return slices.Concat(e.served, e.javas[:min(len(e.javas), mostElsewhere)])
}

// javasOf are the first ports of the JVMs, by their pids.
func javasOf(found []model.Elsewhere) (out []*model.Elsewhere) {
	for _, e := range found {
		if e.Comm == javaComm && !slices.ContainsFunc(out, func(o *model.Elsewhere) bool { return o.PID == e.PID }) {
			out = append(out, new(e))
		}
	}
	return out
}

// noteJavas names the JVMs of other namespaces that listen.
func (r *listing) noteJavas() {
	all := r.elsewhere.javas
	for _, e := range all[:min(len(all), mostElsewhere)] {
		var ports []string
		for _, o := range r.elsewhere.found {
			if o.PID == e.PID && len(ports) < mostElsewhere {
				ports = append(ports, fmt.Sprint(o.Port))
			}
		}
		r.Notes = append(r.Notes, fmt.Sprintf("%s listens on %s in another network namespace: sudo tcpdiag snapshot --pid %d",
			e.Who(), strings.Join(ports, ", "), e.PID))
	}
	if n := len(all) - mostElsewhere; n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d more JVMs listen in other network namespaces: sudo tcpdiag snapshot --all-namespaces", n))
	}
}
