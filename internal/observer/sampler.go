package observer

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/metronome"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Sampler watches the listeners of its namespaces. Run it, or call Scan and
// Sample by hand; Snapshot may be called from anywhere at any time.
type Sampler struct {
	opt Options
	src Sources

	host, kernel string

	early     chan struct{}        // a scan is wanted before its time
	changes   chan change          // of the options, for the scan loop
	metronome *metronome.Metronome // of the fast loop; nil before Run
	published atomic.Pointer[model.Snapshot]

	// mu is held by the two loops, each for microseconds; readers of Snapshot
	// never take it.
	mu       sync.Mutex
	spaces   []*space
	chosen   selection
	homes    map[int]*space // of the processes that are named
	lastTick time.Time
	self     model.Self

	common common // to the spaces

	// Only the scan loop uses what follows.
	scans      int           // number of the latest scan
	looping    bool          // by Run, not by hand: another scan follows the first, and what is dear can wait for it
	once       bool          // it is a one-shot look: what was asked for and is nowhere is a finding
	cost       time.Duration // CPU time of the latest scan, without aside
	aside      time.Duration // of it, for what is looked at seldom and has a budget of its own
	processes  map[processKey]*processMemory
	dumped     bool              // the latest dump of listeners succeeded everywhere
	walked     bool              // the latest walk of the sockets came to its end everywhere
	resetLooks map[int]resetLook // by process
	discovery  finder
	orphans    []*account // of namespaces that have gone
}

// New opens the namespaces of the targets. It fails when the kernel's socket
// table cannot be asked at all, or a process of Options.PIDs does not exist.
func New(src Sources, opt Options) (*Sampler, error) {
	s := &Sampler{
		opt: opt, src: src,
		early:      make(chan struct{}, 1),
		changes:    make(chan change),
		processes:  make(map[processKey]*processMemory),
		resetLooks: make(map[int]resetLook),
	}
	s.host, _ = src.Proc.Hostname()
	s.kernel, _ = src.Proc.KernelRelease()
	s.self.ScanInterval = opt.ScanInterval
	if err := s.openSpaces(opt); err != nil {
		return nil, err
	}
	return s, nil
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
func (s *Sampler) Snapshot() *model.Snapshot { return s.published.Load() }
