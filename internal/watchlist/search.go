package watchlist

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

const (
	// searchEvery bounds how often the processes are asked for their network
	// namespaces.
	searchEvery = 2 * time.Second
	// searchPart is the part of a core that this may take: what cost d is
	// repeated after d / searchPart.
	searchPart = 0.002
	// maxDiscovered is how many namespaces are followed that came with their processes: a user needs
	// no rights to make thousands, and each takes some 40 KiB and two descriptors.
	maxDiscovered = 400
	// arrivedPart is the same while pods arrive.
	arrivedPart = 0.02
)

// Search is the latest count of the namespaces that have processes.
type Search struct {
	at     time.Time
	cost   time.Duration // of CPU time
	Hidden int           // namespaces that may not be entered
	Why    error         // of one of them
	Beyond int           // namespaces beyond maxDiscovered
}

func (c *Search) due(now time.Time, arrived bool) bool {
	rest := cputime.Rest(c.cost, searchEvery, searchPart)
	if arrived {
		rest = cputime.Rest(c.cost, 0, arrivedPart)
	}
	return c.at.IsZero() || now.Sub(c.at) >= rest
}

// discover opens the namespaces that have come and closes those that have ended,
// where all are wanted.
func (p *Namespaces) discover(now time.Time, o *Options, arrived bool, miss *facts.Missing) {
	if !o.AllNamespaces {
		return
	}
	if p.Search.due(now, arrived) {
		next := Search{at: now}
		before := p.Shared.Away()
		next.cost, _ = cputime.Of(func() error {
			p.update(now, o, &next)
			return nil
		})
		next.cost += time.Duration(p.Shared.Away() - before)
		p.Search = next
	}
	if n := p.Search.Hidden; n > 0 {
		miss.Add(model.Unavailable{
			What: fmt.Sprintf("other network namespaces: %d", n), Why: p.Search.Why.Error(),
			How: "run as root with CAP_SYS_ADMIN (setns) and CAP_SYS_PTRACE (/proc/PID/ns/net of other users)",
		})
	}
	if n := p.Search.Beyond; n > 0 {
		miss.Add(model.Unavailable{
			What: fmt.Sprintf("other network namespaces: %d", n),
			Why:  fmt.Sprintf("no more than %d are followed; of the pod, container or user that has most the latest are left out", maxDiscovered),
		})
	}
}

// update compares the namespaces that are open with those that have
// processes. Our own sockets and files keep a namespace alive, so it is its
// processes that count.
func (p *Namespaces) update(now time.Time, o *Options, c *Search) {
	found, err := p.residents()
	if err != nil {
		c.Hidden, c.Why = 1, err
		return
	}
	c.Hidden, c.Why = len(found.hidden), fs.ErrPermission
	var stay, ended []*namespace.Namespace
	open := make(map[netns.ID]bool, len(p.All))
	for _, n := range p.All {
		if _, inhabited := found.byNetNS[netns.ID(n.ID)]; n.Discovered && !inhabited {
			ended = append(ended, n)
			continue
		}
		stay, open[netns.ID(n.ID)] = append(stay, n), true
	}
	selected := o.Selection()
	come := make(map[netns.ID]resident)
	for id, pid := range found.byNetNS {
		if !open[id] {
			come[id] = resident{pid: pid, owner: cgroup.Owner(p.src.Proc, pid)}
		}
	}
	var left []*namespace.Namespace
	stay, left, c.Beyond = bounded(stay, come, maxDiscovered)
	ended = append(ended, left...)
	for id, r := range come {
		n, err := p.enterDiscovered(id, r.pid, o.Window, &selected)
		switch {
		case err == nil:
			n.Owner = r.owner
			stay = append(stay, n)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, hostproc.ErrNoProcess) && !errors.Is(err, errMoved):
			c.Hidden, c.Why = c.Hidden+1, err
		}
	}
	p.All = stay
	for _, n := range ended {
		n.End(now)
		p.retire(n, now)
	}
}

// resident is a process by which a namespace would be opened, and whose it is.
type resident struct {
	pid   int
	owner string
}

// bounded leaves no more discovered namespaces than most: one after the other the latest of the owner that has
// most goes, of those that come before those that are open.
func bounded(open []*namespace.Namespace, come map[netns.ID]resident, most int) (stay, left []*namespace.Namespace, beyond int) {
	ids := slices.Sorted(maps.Keys(come))
	var discovered []*namespace.Namespace // the latest first
	for _, n := range slices.Backward(open) {
		if n.Discovered {
			discovered = append(discovered, n)
		}
	}
	all := len(ids) + len(discovered)
	if all <= most {
		return open, nil, 0
	}
	leaving := make(map[*namespace.Namespace]bool)
	for _, i := range shares.Surplus(all, most, func(i int) string {
		if i < len(ids) {
			return come[ids[i]].owner
		}
		return discovered[i-len(ids)].Owner
	}) {
		if i < len(ids) {
			delete(come, ids[i])
		} else {
			leaving[discovered[i-len(ids)]] = true
		}
	}
	for _, n := range open {
		if leaving[n] {
			left = append(left, n)
		} else {
			stay = append(stay, n)
		}
	}
	return stay, left, all - most
}

// errMoved says that a process is now in another namespace, or that its number
// is another's by now.
var errMoved = errors.New("the process is in another network namespace")

func (p *Namespaces) enterDiscovered(id netns.ID, pid int, window time.Duration, selected *Selection) (*namespace.Namespace, error) {
	n, err := p.enter(pid, window)
	if err != nil {
		return nil, err
	}
	if n.ID != uint64(id) {
		return nil, errors.Join(errMoved, n.Close())
	}
	n.Discovered = true
	configure(n, true, selected)
	return n, nil
}

// residents are which process is in which network namespace.
type residents struct {
	byNetNS map[netns.ID]int    // one process of each
	hidden  map[uint64]struct{} // namespaces that only hostproc.FS.NetID may distinguish
}

func (p *Namespaces) residents() (*residents, error) {
	pids, err := p.src.Proc.PIDs()
	if err != nil {
		return nil, err
	}
	here, err := p.src.Proc.NetID(os.Getpid())
	if err != nil {
		return nil, err
	}
	out := &residents{byNetNS: make(map[netns.ID]int), hidden: make(map[uint64]struct{})}
	for _, pid := range pids {
		id, err := netns.OfPID(p.src.Mount, pid)
		if errors.Is(err, fs.ErrPermission) {
			if n, err := p.src.Proc.NetID(pid); err == nil {
				out.hidden[n] = struct{}{}
			}
		}
		if err != nil {
			continue
		}
		if _, ok := out.byNetNS[id]; !ok {
			out.byNetNS[id] = pid
		}
	}
	delete(out.hidden, here)
	for _, pid := range out.byNetNS { // another of its processes may have answered
		if len(out.hidden) == 0 {
			break
		}
		if n, err := p.src.Proc.NetID(pid); err == nil {
			delete(out.hidden, n)
		}
	}
	return out, nil
}
