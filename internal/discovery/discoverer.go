package discovery

import (
	"context"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// Discoverer finds out what serves listening ports. It is for one
// machine; its methods are safe for concurrent use, and none holds a lock while
// it waits for a stranger.
type Discoverer struct {
	proc     hostproc.FS
	now      func() time.Time
	examiner examine.Examiner
	turns    *shares.Turns // of examinations, by owner

	mu        sync.Mutex
	entries   map[int]*entry
	actuators []Actuator
	unseen    map[string]*meters // by the Actuator's URL: of processes that cannot be seen

	asks     *shares.Turns // of questions to Actuators, by owner
	patience sync.Mutex
	waited   time.Duration // for first answers

	numbersWaited time.Duration // for command lines
}

// Option changes what a Discoverer does.
type Option func(*Discoverer)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option {
	return func(d *Discoverer) { d.now = now }
}

// WithExaminer says who reads what strangers wrote. Without it the Discoverer
// does so itself, which is for tests alone.
func WithExaminer(e examine.Examiner) Option {
	return func(d *Discoverer) { d.examiner = e }
}

// SetActuators names the Actuators to ask from now on.
func (d *Discoverer) SetActuators(list []Actuator) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.actuators = list
	clear(d.unseen)
}

// NewDiscoverer makes a Discoverer that reads through proc.
func NewDiscoverer(proc hostproc.FS, options ...Option) *Discoverer {
	d := &Discoverer{
		proc: proc, now: time.Now, examiner: examine.Here{Proc: proc}, turns: shares.NewTurns(maxAtOnce, maxRemembered, nil),
		asks: shares.NewTurns(maxAsks, maxRemembered, nil), entries: map[int]*entry{}, unseen: map[string]*meters{},
	}
	for _, option := range options {
		option(d)
	}
	return d
}

// Discover says what process pid is and, for each of its listening sockets, the
// connector behind it. startTime is field 22 of /proc/PID/stat. The first time it
// waits for the process's examination, as long as ctx allows: until that is over
// only the threads and the kernel speak. Afterwards it answers from memory, and
// examinations are repeated in the background. The result is the caller's own.
func (d *Discoverer) Discover(ctx context.Context, pid int, startTime uint64, ports []match.Listening) (match.Connectors, []model.Unavailable) {
	e := d.entry(pid, startTime)
	if first := d.examine(e); first != nil {
		select {
		case <-first:
		case <-ctx.Done():
		}
	}
	connectors, unavailable, base := d.match(e, ports)
	if base.URL != "" {
		unavailable = append(unavailable, d.ask(ctx, e, base, connectors)...)
	}
	return connectors, examine.Bounded(pid, unavailable)
}

// match puts what is known of a process and its listening sockets together; base
// is the Actuator that knows more.
func (d *Discoverer) match(e *entry, ports []match.Listening) (_ match.Connectors, _ []model.Unavailable, base Actuator) {
	d.refreshPools(e)
	d.mu.Lock()
	defer d.mu.Unlock()
	f := e.found()
	connectors, unplaced := match.Match(f, ports, e.pools, runtime.NumCPU())
	if e.irrelevant(connectors) {
		return printable(connectors), nil, Actuator{}
	}
	for _, c := range connectors {
		c.Backends = f.Backends
	}
	return printable(connectors), slices.Concat(e.unavailable(), unplaced), d.actuatorOf(e, connectors)
}

// refreshPools reads the names of the process's threads again when their
// number has changed, and now and then in any case.
func (d *Discoverer) refreshPools(e *entry) {
	now := d.now()
	threads := d.threadCount(e.PID)
	d.mu.Lock()
	known := threads != 0 && threads == e.threads && now.Sub(e.poolsAt) < namesKeep
	d.mu.Unlock()
	if known {
		return
	}
	pools := match.Threads(func(yield func(string) bool) {
		more := true
		_ = d.proc.ThreadNames(e.PID, func(_ int, comm string) {
			more = more && yield(comm)
		})
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	e.threads, e.poolsAt, e.pools = threads, now, pools
}

// threadCount is the number of links of /proc/PID/task, which has one for each
// thread; 0 when it is unknown.
func (d *Discoverer) threadCount(pid int) uint64 {
	info, err := os.Stat(d.proc.Path(pid, "task"))
	if err != nil {
		return 0
	}
	return examine.LinksOf(info)
}

// firstNumbers is how long is waited, in all, for processes that are examined for the
// first time.
const firstNumbers = time.Second

// Numbers are those in a process's command line that can be ports, each by itself:
// "--server.port=8443" names 8443, not 443. It is nil while the process is being
// examined for the first time and patience is at its end.
func (d *Discoverer) Numbers(pid int, startTime uint64) []uint16 {
	e := d.entry(pid, startTime)
	if first := d.examine(e); first != nil {
		d.waitForNumbers(first)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.current == nil {
		return nil
	}
	return e.current.Numbers
}

func (d *Discoverer) waitForNumbers(first <-chan struct{}) {
	d.patience.Lock()
	left := firstNumbers - d.numbersWaited
	d.patience.Unlock()
	begin := time.Now()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-first:
	case <-timer.C:
	}
	d.patience.Lock()
	d.numbersWaited += time.Since(begin)
	d.patience.Unlock()
}

// printable does the same to the names in connectors: executor, files,
// properties.
func printable(connectors match.Connectors) match.Connectors {
	for _, c := range connectors {
		for _, name := range []*string{&c.Version, &c.FrameworkVersion, &c.Protocol, &c.Executor} {
			*name = model.Escape(*name)
		}
		for _, s := range []**model.Setting[int]{
			&c.MaxConnections, &c.AcceptCount, &c.MaxThreads, &c.MinSpareThreads, &c.MaxQueue, &c.MaxKeepAliveRequests, &c.Gate,
		} {
			*s = printableSetting(*s)
		}
		for _, s := range []**model.Setting[time.Duration]{&c.ConnectionTimeout, &c.KeepAliveTimeout} {
			*s = printableSetting(*s)
		}
		c.VirtualThreads = printableSetting(c.VirtualThreads)
		c.Backends = printableBackends(c.Backends)
	}
	return connectors
}

// printableBackends: their names are checked where they are read.
func printableBackends(list []model.Backend) []model.Backend {
	out := slices.Clone(list)
	for i := range out {
		if p := out[i].Pool; p != nil {
			out[i].Pool = &model.Pool{Library: p.Library, Setting: p.Setting, Size: *printableSetting(&p.Size)}
		}
	}
	return out
}

func printableSetting[T any](s *model.Setting[T]) *model.Setting[T] {
	if s == nil {
		return nil
	}
	out := *s
	out.Source, out.Note = examine.Sentence(s.Source), examine.Sentence(s.Note)
	return &out
}
