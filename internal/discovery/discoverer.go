package discovery

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// maxRemembered bounds the processes that a Discoverer remembers.
	maxRemembered = 1000
	// settled is how old a process must be for its configuration to be read
	// and done with: a file that changes later changes nothing in it.
	settled = time.Minute
	// forgotten is how long a process may go unasked for.
	forgotten = 10 * time.Minute
	// namesKeep is how long thread names are believed while the number of
	// threads stays the same.
	namesKeep = 10 * time.Second
)

// Listening is a listening socket of a process.
type Listening struct {
	Port    uint16
	Address netip.Addr
	// SendQ is the backlog in force (Send-Q of the LISTEN socket), 0 when it
	// is not known.
	SendQ int
}

// Discoverer finds out what stands behind listening ports. It is for one
// machine; its methods are safe for concurrent use.
type Discoverer struct {
	proc hostproc.FS
	now  func() time.Time

	mu        sync.Mutex
	entries   map[int]*entry
	actuators []Actuator
	unseen    map[string]*meters // by the Actuator's URL: of processes that cannot be seen
}

// Option changes what a Discoverer does.
type Option func(*Discoverer)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option {
	return func(d *Discoverer) { d.now = now }
}

// WithActuator names Actuator's base URL ("http://127.0.0.1:8081/actuator"),
// which is otherwise only looked for on a management port of its own. It is
// asked for the process that listens on the URL's port.
func WithActuator(url string) Option {
	return func(d *Discoverer) { d.actuators = []Actuator{{URL: url}} }
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
	d := &Discoverer{proc: proc, now: time.Now, entries: map[int]*entry{}, unseen: map[string]*meters{}}
	for _, option := range options {
		option(d)
	}
	return d
}

// entry is what is remembered of a process.
type entry struct {
	startTime uint64
	asked     time.Time
	target    *target
	found     *found
	late      []string // files that changed after they were read

	pools   Pools
	poolsAt time.Time
	threads uint64

	meters meters
}

// Discover tells what process pid is and, for each of its listening sockets, the
// connector behind it. startTime is field 22 of /proc/PID/stat. As long as the
// process and every file that was read stay the same, nothing is read again.
// The result is the caller's own.
func (d *Discoverer) Discover(ctx context.Context, pid int, startTime uint64, ports []Listening) (Connectors, []model.Unavailable) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entry(pid, startTime)
	e.asked = d.now()
	d.refreshPools(pid, e)
	connectors, unplaced := e.found.match(ports, e.pools, runtime.NumCPU())
	if e.irrelevant(connectors) {
		return printable(connectors), nil
	}
	unavailable := slices.Concat(e.target.missing, e.found.unavailable, unplaced, e.sayLate(), d.ask(ctx, pid, e, connectors))
	return printable(connectors), bounded(pid, unavailable)
}

// irrelevant says that a process is certainly no Tomcat, so that nobody needs
// to know what could not be read of it.
func (e *entry) irrelevant(connectors Connectors) bool {
	for _, c := range connectors {
		if c.Server == serverTomcat {
			return false
		}
	}
	return e.target.known && len(e.found.connectors) == 0 && len(e.pools.all) == 0
}

// entry is what is remembered of a process, or found out now.
func (d *Discoverer) entry(pid int, startTime uint64) *entry {
	e := d.entries[pid]
	if e != nil && e.startTime == startTime && d.holds(e) {
		return e
	}
	d.forget()
	t := look(d.proc, pid)
	e = &entry{startTime: startTime, target: t, found: identify(t)}
	e.doubtLate()
	t.forget()
	if d.replaced(pid, startTime) {
		return &entry{target: t, found: &found{server: serverOther, unavailable: []model.Unavailable{{
			What: fmt.Sprintf("configuration of pid %d", pid), Why: "the process ended while it was read, and another has its number",
		}}}}
	}
	d.entries[pid] = e
	return e
}

// replaced says that the pid is another process's by now, whose files may have
// been read in place of the first one's.
func (d *Discoverer) replaced(pid int, startTime uint64) bool {
	p, err := d.proc.Process(pid)
	return err == nil && p.StartTime != startTime
}

// forget makes room by dropping processes that nobody asks for any more.
func (d *Discoverer) forget() {
	now := d.now()
	maps.DeleteFunc(d.entries, func(_ int, e *entry) bool { return now.Sub(e.asked) > forgotten })
	if len(d.entries) >= maxRemembered {
		clear(d.entries)
	}
}

// holds says whether what was found is still what the process runs with. Once
// it has started, a change of its files is only noted: what was read before is
// what it read itself.
func (d *Discoverer) holds(e *entry) bool {
	changed := e.target.files.changed()
	if len(changed) == 0 {
		return true
	}
	if e.target.started.IsZero() || d.now().Sub(e.target.started) < settled {
		return false
	}
	for _, p := range changed {
		content, ok := e.target.files.renew(p)
		if !ok {
			return false
		}
		if content && !slices.Contains(e.late, p.name) {
			e.late = append(e.late, p.name)
		}
	}
	return true
}

// sayLate names the files whose new content is not in force yet.
func (e *entry) sayLate() []model.Unavailable {
	out := make([]model.Unavailable, len(e.late))
	for i, name := range e.late {
		out[i] = model.Unavailable{
			What: fmt.Sprintf("%s of pid %d as it is now", name, e.target.pid),
			Why:  "it changed after the process had read it; what it said before is shown",
			How:  "it takes effect when the server is started again",
		}
	}
	return out
}

// doubtLate notes on each setting from a file that was written after the
// process had started that the process may have read something else.
func (e *entry) doubtLate() {
	if e.target.started.IsZero() {
		return
	}
	for _, name := range e.target.files.writtenAfter(e.target.started.Add(settled)) {
		file := path.Base(name)
		for i := range e.found.connectors {
			doubtFile(file).connector(&e.found.connectors[i].Connector)
		}
	}
}

// refreshPools reads the names of the process's threads again when their
// number has changed, and now and then in any case.
func (d *Discoverer) refreshPools(pid int, e *entry) {
	now := d.now()
	threads := d.threadCount(pid)
	if threads != 0 && threads == e.threads && now.Sub(e.poolsAt) < namesKeep {
		return
	}
	e.threads, e.poolsAt = threads, now
	e.pools = Threads(func(yield func(string) bool) {
		more := true
		_ = d.proc.ThreadNames(pid, func(_ int, comm string) {
			more = more && yield(comm)
		})
	})
}

// threadCount is the number of links of /proc/PID/task, which has one for each
// thread; 0 when it cannot be told.
func (d *Discoverer) threadCount(pid int) uint64 {
	info, err := os.Stat(path.Join(path.Dir(d.proc.Root(pid)), "task"))
	if err != nil {
		return 0
	}
	return linksOf(info)
}
