package observer

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/target"
)

const (
	// censusEvery bounds how often the processes are asked for their network
	// namespaces.
	censusEvery = 2 * time.Second
	// censusPart is the part of a core that this may take: what cost d is
	// repeated after d / censusPart.
	censusPart = 0.002
)

// census is the latest count of the namespaces that have processes.
type census struct {
	at     time.Time
	cost   time.Duration // of CPU time
	closed int           // namespaces that may not be entered
	why    error         // of one of them
}

func (c *census) due(now time.Time) bool {
	return c.at.IsZero() || now.Sub(c.at) >= rest(c.cost, censusEvery, censusPart)
}

// discover opens the namespaces that have come and closes those that have ended,
// where all are wanted.
func (p *places) discover(now time.Time, o *Options, miss *missing) {
	if !o.AllNamespaces {
		return
	}
	if p.census.due(now) {
		next := census{at: now}
		before := p.shared.Away()
		next.cost, _ = cputime.Of(func() error {
			p.comeAndGo(now, o, &next)
			return nil
		})
		next.cost += time.Duration(p.shared.Away() - before)
		p.census = next
	}
	if n := p.census.closed; n > 0 {
		miss.add(model.Unavailable{
			What: fmt.Sprintf("other network namespaces: %d", n), Why: p.census.why.Error(),
			How: "run as root with CAP_SYS_ADMIN (setns) and CAP_SYS_PTRACE (/proc/PID/ns/net of other users)",
		})
	}
}

// comeAndGo compares the namespaces that are open with those that have
// processes. Our own sockets and files keep a namespace alive, so it is its
// processes that count.
func (p *places) comeAndGo(now time.Time, o *Options, c *census) {
	found, err := p.inhabitants()
	if err != nil {
		c.closed, c.why = 1, err
		return
	}
	c.closed, c.why = len(found.closed), fs.ErrPermission
	var stay, ended []*namespace.Namespace
	open := make(map[netns.ID]bool, len(p.list))
	for _, n := range p.list {
		if _, inhabited := found.resident[netns.ID(n.ID)]; n.Discovered && !inhabited {
			ended = append(ended, n)
			continue
		}
		stay, open[netns.ID(n.ID)] = append(stay, n), true
	}
	selected := o.selection()
	for id, pid := range found.resident {
		if open[id] {
			continue
		}
		n, err := p.enterDiscovered(id, pid, o.Window, &selected)
		switch {
		case err == nil:
			stay = append(stay, n)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, hostproc.ErrGone) && !errors.Is(err, errMoved):
			c.closed, c.why = c.closed+1, err
		}
	}
	p.list = stay
	for _, n := range ended {
		n.End(now)
		p.leave(n, now)
	}
}

// errMoved says that a process is now in another namespace, or that its number
// is another's by now.
var errMoved = errors.New("the process is in another network namespace")

func (p *places) enterDiscovered(id netns.ID, pid int, window time.Duration, selected *target.Selection) (*namespace.Namespace, error) {
	n, err := p.enter(pid, window)
	if err != nil {
		return nil, err
	}
	if n.ID != uint64(id) {
		return nil, errors.Join(errMoved, n.Close())
	}
	n.Discovered = true
	equip(n, true, selected)
	return n, nil
}
