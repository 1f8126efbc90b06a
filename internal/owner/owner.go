// Package owner finds the process that holds a listening socket. The kernel
// does not report it: a socket's inode has to be found among the descriptors of all
// processes, and on a machine with 300 processes of 1000 descriptors each that
// is 300,000 readlinks. So the search asks the likeliest processes first,
// looks at low descriptors before high ones, stops as soon as every socket has
// an owner, and remembers what it found and what it could not find.
//
// Where descriptors may not be read, Tomcat's thread names, which any user may
// read, name the owner of a port. What is read of /proc, hostproc reads; here is
// decided what to ask, in which order, and how long an answer holds.
package owner

import (
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

const (
	// retryAfter is how long a socket without an owner, or with one that only
	// thread names gave, is left alone. Processes that start meanwhile are
	// searched: a listener changes hands only by fork or SCM_RIGHTS.
	retryAfter = 30 * time.Second
	// restRatio makes that longer where a search takes long (a second for
	// 300,000 descriptors): it may take 1 % of a core.
	restRatio = 100
	// forgetAfter is how long a socket that nobody asks for is remembered, forgetSoon where more than
	// maxRemembered are: listeners that come and go by the hundred are all asked for once.
	forgetAfter   = 5 * time.Minute
	forgetSoon    = 2 * time.Second
	maxRemembered = 2048
)

// Socket is a listening socket as sock_diag shows it.
type Socket struct {
	Inode uint32
	Port  uint16
	UID   uint32 // of the process that created it (idiag_uid)
	// Net is the network namespace that it is in, as hostproc.FS.NetID returns it;
	// 0 is the calling thread's.
	Net uint64
	// Cgroup is that in which it was made, 0 where that is not known.
	Cgroup uint64
}

// Process is the owner of a socket.
type Process struct {
	PID       int
	Comm      string
	StartTime uint64 // in clock ticks since boot (field 22 of stat)
	// ByThreadName is set when the process's descriptors could not be read and
	// its thread names (http-nio-8080-…) stand in for the proof.
	ByThreadName bool
}

// Denied is a process whose descriptors could not be read while some socket
// had no proven owner: it may be the owner.
type Denied struct {
	PID  int // 0 when processes are hidden altogether (hostproc.ErrInvisible)
	Comm string
	UID  uint32
	Err  error
}

// Proc is what a search asks of /proc; hostproc.FS answers it.
type Proc interface {
	PIDs() ([]int, error)
	Stat(pid int) (hostproc.Stat, error)
	EffectiveUID(pid int) (uint32, error)
	// NetID identifies a process's network namespace.
	NetID(pid int) (uint64, error)
	// Hidden says that processes of others cannot be listed.
	Hidden() bool
	// SocketFiles and SocketAt read the descriptors of a process.
	SocketFiles(pid, from, limit int, fn func(fd int, inode uint32) bool) (next int, err error)
	SocketAt(pid, fd int) (inode uint32, ok bool)
	// ThreadNames is for processes whose descriptors may not be read.
	ThreadNames(pid int, fn func(tid int, comm string)) error
}

// Finder finds owners and remembers them. It is safe for concurrent use.
type Finder struct {
	mu      sync.Mutex
	proc    Proc
	now     func() time.Time
	owners  map[uint32]*owned
	missing map[uint32]*missed
	byPID   map[int]*holdings // by pid
	pids    pidLog
	denied  map[int]Denied

	// numbers are those that a process's command line names. To read it is to wait
	// for that process's memory, and so is somebody else's work.
	numbers func(pid int, startTime uint64) []uint16

	containers func(pid int) (cgroup uint64, container bool)
}

// CommandLines says who reads the numbers of a command line. Without it a process
// whose thread names have lost their port is not found by it. Call it before the
// first Find.
func (f *Finder) CommandLines(numbers func(pid int, startTime uint64) []uint16) { f.numbers = numbers }

// Containers says who knows the cgroup of a process, and whether it is a container's. Without it
// nobody is a stranger to a socket. Call it before the first Find.
func (f *Finder) Containers(of func(pid int) (cgroup uint64, container bool)) { f.containers = of }

// owned is a remembered owner.
type owned struct {
	Process
	fd    int // the descriptor that is the socket
	found time.Time
	asked time.Time
}

// missed is a socket whose owner was searched for and not found.
type missed struct {
	retry time.Time // when to search in all processes again
	seen  int       // processes up to this number in pidLog were asked
	asked time.Time
}

// New makes a Finder that asks proc.
func New(proc Proc) *Finder {
	return &Finder{
		proc:    proc,
		now:     time.Now,
		owners:  map[uint32]*owned{},
		missing: map[uint32]*missed{},
		byPID:   map[int]*holdings{},
		denied:  map[int]Denied{},
		numbers: func(int, uint64) []uint16 { return nil },

		containers: func(int) (uint64, bool) { return 0, false },
	}
}

// Find returns the owner of each socket that has one, by inode. If a socket
// has none that is proven, it also returns the processes that could not be
// asked.
//
// A socket that several processes hold (a parent and its forked children)
// belongs, among equally likely ones, to the one that started first. With
// systemd's socket activation both systemd and the service hold it; a service
// that runs as the socket's user, or is a JVM, is asked before systemd. A process in a
// container that holds a socket of another cgroup or network namespace, as one that it was passed, owns
// it only if nobody else holds it.
//
// Of the processes that may not be read, only those of the socket's network
// namespace can be found by their thread names. Call it from a thread inside the
// namespace of the sockets that do not say theirs.
func (f *Finder) Find(sockets []Socket) (map[uint32]Process, []Denied) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.newRound()
	for _, s := range sockets {
		r.sort(s)
	}
	r.search()
	f.forget(r.now)
	return r.found, r.deniedList()
}

// forget drops what nobody has asked for lately.
func (f *Finder) forget(now time.Time) {
	forgetAfter := forgetAfter
	if len(f.owners)+len(f.missing) > maxRemembered {
		forgetAfter = forgetSoon
	}
	for inode, o := range f.owners {
		if now.Sub(o.asked) > forgetAfter {
			delete(f.owners, inode)
		}
	}
	for inode, m := range f.missing {
		if now.Sub(m.asked) > forgetAfter {
			delete(f.missing, inode)
		}
	}
}
