package sampler

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

// Sampler watches the listeners of its namespaces. Run it, or call Scan and
// Sample by hand; Snapshot may be called from anywhere at any time.
type Sampler struct {
	opt Options
	src Sources

	host, kernel string

	early     chan struct{} // a scan is wanted before its time
	published atomic.Pointer[backlog.Snapshot]

	// mu is held by the two loops, each for microseconds; readers of Snapshot
	// never take it.
	mu       sync.Mutex
	spaces   []*space
	lastTick time.Time
	self     backlog.Self

	// Only the scan loop uses what follows.
	scans      int           // number of the latest scan
	looping    bool          // by Run, not by hand: what is dear can wait for the second scan
	cost       time.Duration // CPU time of the latest scan, without aside
	aside      time.Duration // of it, for what is looked at seldom and has a budget of its own
	processes  map[processKey]*processMemory
	dumped     bool // the latest dump of listeners succeeded everywhere
	resetLooks map[backlog.ListenerID]resetLook
}

// New opens the namespaces of the targets. It fails when the kernel's socket
// table cannot be asked at all, or a process of Options.PIDs does not exist.
func New(src Sources, opt Options) (*Sampler, error) {
	s := &Sampler{
		opt: opt, src: src,
		early:      make(chan struct{}, 1),
		processes:  make(map[processKey]*processMemory),
		resetLooks: make(map[backlog.ListenerID]resetLook),
	}
	s.host, _ = src.Proc.Hostname()
	s.kernel, _ = src.Proc.KernelRelease()
	s.self.ScanInterval = opt.ScanInterval
	for _, pid := range opt.inside() {
		if err := s.addSpace(pid); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *Sampler) addSpace(pid int) error {
	if pid != 0 {
		if _, err := s.src.Proc.Process(pid); err != nil {
			return fmt.Errorf("pid %d: %w", pid, err)
		}
	}
	sp, err := openSpace(s.src, pid)
	if err != nil {
		return err
	}
	for _, other := range s.spaces {
		if other.id == sp.id {
			return sp.close()
		}
	}
	sp.window, sp.thresholds, sp.expects = s.opt.Window, s.opt.Thresholds, s.expects
	s.spaces = append(s.spaces, sp)
	return nil
}

// expects is true for addresses that the targets are sure to name.
func (s *Sampler) expects(id backlog.ListenerID) bool {
	if len(s.opt.PIDs) > 0 {
		return false
	}
	return slices.Contains(s.opt.Ports, id.Address.Port()) || (s.opt.All && len(s.opt.Ports) == 0)
}

// Close releases the netlink sockets and files.
func (s *Sampler) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, sp := range s.spaces {
		errs = append(errs, sp.close())
	}
	s.spaces = nil
	for _, m := range s.processes {
		m.close()
	}
	return errors.Join(errs...)
}

// Snapshot is what the latest scan published, nil before the first. It must
// not be changed.
func (s *Sampler) Snapshot() *backlog.Snapshot { return s.published.Load() }
