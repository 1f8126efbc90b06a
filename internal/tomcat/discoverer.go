package tomcat

import (
	"context"
	"net/netip"
	"os"
	"sync"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// maxRemembered bounds the processes that a Discoverer remembers.
const maxRemembered = 1000

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

	mu      sync.Mutex
	entries map[int]*entry
}

// entry is what is remembered of a process.
type entry struct {
	startTime uint64
	target    *target
	found     *found
}

// NewDiscoverer makes a Discoverer that reads through proc.
func NewDiscoverer(proc hostproc.FS) *Discoverer {
	return &Discoverer{proc: proc, entries: map[int]*entry{}}
}

// Discover tells what process pid is and, for each of its listening ports, the
// connector behind it. startTime is field 22 of /proc/PID/stat. As long as the
// process and every file that was read stay the same, nothing is read again.
// The result is the caller's own.
func (d *Discoverer) Discover(ctx context.Context, pid int, startTime uint64, ports []Listening) (map[uint16]*backlog.Connector, []backlog.Unavailable) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entry(pid, startTime)
	pools := d.pools(pid)
	connectors := make(map[uint16]*backlog.Connector, len(ports))
	unavailable := append([]backlog.Unavailable(nil), e.target.missing...)
	unavailable = append(unavailable, e.found.unavailable...)
	for port, c := range e.found.match(ports, pools) {
		connectors[port] = c
	}
	_ = ctx
	return connectors, unavailable
}

func (d *Discoverer) entry(pid int, startTime uint64) *entry {
	e := d.entries[pid]
	if e != nil && e.startTime == startTime && !e.target.files.changed() {
		return e
	}
	if len(d.entries) >= maxRemembered {
		clear(d.entries)
	}
	t := look(d.proc, pid)
	e = &entry{startTime: startTime, target: t, found: identify(t)}
	d.entries[pid] = e
	return e
}

// pools reads the names of the process's threads as they are now.
func (d *Discoverer) pools(pid int) Pools {
	return Threads(func(yield func(string) bool) {
		more := true
		_ = d.proc.ThreadNames(pid, func(_ int, comm string) {
			more = more && yield(comm)
		})
	})
}

// readable says why a folder of /proc/PID cannot be entered.
func readable(link string) error {
	_, err := os.Readlink(link)
	return err
}
