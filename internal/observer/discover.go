package observer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/netns"
)

const (
	// discoverEvery bounds how often the processes are asked for their network
	// namespaces.
	discoverEvery = 2 * time.Second
	// discoverPart is the part of a core that this may take: what cost d is
	// repeated after d / discoverPart, and does not stretch the scans' interval.
	discoverPart = 0.002
)

// discovery is the latest look for network namespaces.
type finder struct {
	at     time.Time
	cost   time.Duration // of CPU time
	closed int           // namespaces that may not be entered
	why    error         // of one of them
}

func (d *finder) due(now time.Time) bool {
	return d.at.IsZero() || now.Sub(d.at) >= max(discoverEvery, time.Duration(float64(d.cost)/discoverPart))
}

// discover opens the namespaces that have come and closes those that have gone.
func (s *Sampler) discover(sc *scan) {
	if !s.opt.AllNamespaces {
		return
	}
	if s.discovery.due(sc.at) {
		before := s.common.away.Load()
		next := finder{at: sc.at}
		next.cost, _ = cpuTime(func() error {
			s.comeAndGo(sc.at, &next)
			return nil
		})
		next.cost += time.Duration(s.common.away.Load() - before)
		s.aside += next.cost
		s.discovery = next
	}
	if n := s.discovery.closed; n > 0 {
		sc.miss.add(model.Unavailable{
			What: fmt.Sprintf("other network namespaces: %d", n), Why: s.discovery.why.Error(),
			How: "run as root with CAP_SYS_ADMIN (setns) and CAP_SYS_PTRACE (/proc/PID/ns/net of other users)",
		})
	}
}

// comeAndGo compares the namespaces that are open with those that have
// processes. Our own sockets and files keep a namespace alive, so it is its
// processes that count.
func (s *Sampler) comeAndGo(now time.Time, d *finder) {
	c, err := s.census()
	if err != nil {
		d.closed, d.why = 1, err
		return
	}
	d.closed, d.why = len(c.closed), fs.ErrPermission
	var stay, gone []*space
	open := make(map[netns.ID]bool, len(s.spaces))
	for _, sp := range s.spaces {
		if _, inhabited := c.resident[sp.id]; sp.discovered && !inhabited {
			gone = append(gone, sp)
			continue
		}
		stay, open[sp.id] = append(stay, sp), true
	}
	for id, pid := range c.resident {
		if open[id] {
			continue
		}
		sp, err := s.openDiscovered(id, pid)
		switch {
		case err == nil:
			stay = append(stay, sp)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, hostproc.ErrGone) && !errors.Is(err, errMoved):
			d.closed, d.why = d.closed+1, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spaces = stay
	for _, sp := range gone {
		for i := range sp.watches {
			sp.watches[i].vanish(now)
		}
		s.abandon(sp, now)
	}
}

// errMoved says that a process has gone elsewhere, or that its number is
// another's by now.
var errMoved = errors.New("the process is in another network namespace")

func (s *Sampler) openDiscovered(id netns.ID, pid int) (*space, error) {
	sp, err := openSpace(s.src, &s.common, pid)
	if err != nil {
		return nil, err
	}
	if sp.id != id {
		return nil, errors.Join(errMoved, sp.close())
	}
	sp.discovered = true
	s.equip(sp, true)
	return sp, nil
}

// census is which process is in which network namespace.
type census struct {
	resident map[netns.ID]int    // one process of each
	closed   map[uint64]struct{} // namespaces that may not be told apart but by hostproc.FS.NetID
}

func (s *Sampler) census() (*census, error) {
	pids, err := s.src.Proc.PIDs()
	if err != nil {
		return nil, err
	}
	own, err := s.src.Proc.NetID(os.Getpid())
	if err != nil {
		return nil, err
	}
	c := &census{resident: make(map[netns.ID]int), closed: make(map[uint64]struct{})}
	for _, pid := range pids {
		id, err := netns.OfPID(s.src.Mount, pid)
		if errors.Is(err, fs.ErrPermission) {
			if n, err := s.src.Proc.NetID(pid); err == nil {
				c.closed[n] = struct{}{}
			}
		}
		if err != nil {
			continue
		}
		if _, ok := c.resident[id]; !ok {
			c.resident[id] = pid
		}
	}
	delete(c.closed, own)
	for _, pid := range c.resident { // another of its processes may have told
		if len(c.closed) == 0 {
			break
		}
		if n, err := s.src.Proc.NetID(pid); err == nil {
			delete(c.closed, n)
		}
	}
	return c, nil
}

// abandon closes a namespace and keeps what its listeners have lost so far. Its
// counters can be read to the last, as our own files keep it alive.
func (s *Sampler) abandon(sp *space, now time.Time) {
	if sp.awake() {
		sp.splitDrops()
	}
	s.forgetFormer(sp)
	for _, a := range sp.accounts {
		if sp.awake() {
			a.fallDue()
			a.settle(func(bool) model.Cause { return sp.cause(a, a.looks.last.Listener, false) })
		}
		if a.lastSeen.IsZero() {
			a.lastSeen = now
		}
		s.orphans = append(s.orphans, a)
	}
	_ = sp.close() // nothing can be done about it
}

// forgetFormer drops what a former namespace of the same number has left of the
// addresses that have an account in this one: the kernel gives numbers again,
// and the series are named by them. The counters then start from nothing, as the
// kernel's own do, which rate() and increase() know how to read.
func (s *Sampler) forgetFormer(sp *space) {
	s.orphans = slices.DeleteFunc(s.orphans, func(a *account) bool {
		return sp.accounts[a.id] != nil // the number is part of the id
	})
}

// adopt takes the accounts over that a namespace has left which is named again.
// The pods that come and go adopt nothing: what has the same number is another
// pod.
func (sp *space) adopt(orphans []*account) (rest []*account) {
	return slices.DeleteFunc(orphans, func(a *account) bool {
		if a.id.NetNS != uint64(sp.id) {
			return false
		}
		a.forget()
		sp.accounts[a.id] = a
		return true
	})
}
