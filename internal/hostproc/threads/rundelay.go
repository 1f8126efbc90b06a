package threads

import (
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// RunDelayCounter adds up a process's run delay so that it never falls when
// threads end. What a thread waited between the last reading and its end is
// lost. The kernel adds a wait up when it has ended, and a thread of a group with few
// shares waits for seconds: what still lasts is counted by the clock. It is for one
// goroutine at a time, and for one process: make a new one
// when the pid or its start time changes.
type RunDelayCounter struct {
	fs    hostproc.FS
	pid   int
	load  *Load     // shared by the processes of the host
	at    time.Time // of the last reading
	total time.Duration
	last  map[int]schedule // by thread
	next  map[int]schedule
	ahead map[int]time.Duration // counted of a wait before the kernel did
	// aside are the JVM's own service threads, which no request waits for.
	aside map[int]bool
	names map[int]bool // reused: threads alive
}

// NewRunDelayCounter starts at the delay of the threads alive at the first Read.
func NewRunDelayCounter(fs hostproc.FS, pid int, load *Load) *RunDelayCounter {
	return &RunDelayCounter{
		fs: fs, pid: pid, load: load, last: map[int]schedule{}, next: map[int]schedule{}, ahead: map[int]time.Duration{},
		aside: map[int]bool{}, names: map[int]bool{},
	}
}

// Read returns the sum so far. On an error it stays as it was.
func (c *RunDelayCounter) Read(now time.Time) (time.Duration, error) {
	clear(c.next)
	err := eachSchedule(c.fs, c.pid, func(tid int, s schedule) { c.next[tid] = s })
	if err == nil {
		err = c.setAside()
	}
	if err != nil {
		return c.total, err
	}
	c.add(now)
	c.last, c.next, c.at = c.next, c.last, now
	for tid := range c.ahead {
		if _, alive := c.last[tid]; !alive {
			delete(c.ahead, tid)
		}
	}
	return c.total, nil
}

// The states of a few threads that have not run say whether those of the others are
// worth reading, of which there is a limit.
const (
	firstStates = 6
	mostStates  = 256
)

func (c *RunDelayCounter) add(now time.Time) {
	states := 0
	if !c.at.IsZero() && c.load.someWait(c.fs, now) {
		states = firstStates
	}
	found := false
	for tid, s := range c.next {
		if c.aside[tid] {
			continue
		}
		before, known := c.last[tid]
		if s.delay < before.delay { // the id was given to a new thread
			before, known = schedule{}, false
			delete(c.ahead, tid)
		}
		if !known || s != before {
			c.total += s.delay - before.delay - min(c.ahead[tid], s.delay-before.delay)
			delete(c.ahead, tid)
			continue
		}
		if states--; states >= 0 && runnable(c.fs, c.pid, tid) {
			if !found {
				found, states = true, mostStates
			}
			c.ahead[tid] += now.Sub(c.at)
			c.total += now.Sub(c.at)
		}
	}
}

// setAside reads the names when threads came or went.
func (c *RunDelayCounter) setAside() error {
	same := len(c.names) == len(c.next)
	for tid := range c.next {
		same = same && c.names[tid]
	}
	if same {
		return nil
	}
	clear(c.names)
	clear(c.aside)
	return c.fs.ThreadNames(c.pid, func(tid int, comm string) {
		c.names[tid] = true
		if serviceThread(comm) {
			c.aside[tid] = true
		}
	})
}

// serviceThread recognises the JVM's own threads by their names, as HotSpot sets
// them and the kernel cuts them: compilers, collectors, timers. They wake often
// and wait for a CPU like everybody on a busy machine, but no request waits
// with them; what a collection costs shows in the safepoint time. The main
// thread of a JVM ("java") only waits for the end.
func serviceThread(comm string) bool {
	for _, prefix := range []string{
		"C1 Compiler", "C2 Compiler", "VM Periodic Tas", "VM Thread", "G1 ", "GC Thread", "Monitor Deflati",
		"Signal Dispatch", "Service Thread", "Common-Cleaner", "Finalizer", "Reference Handl", "Notification Th",
		"Attach Listener", "JFR ", "Sweeper thread", "StringDedup", "ZDirector", "ZDriver", "ZWorker", "ZStat", "XDriver",
		"Shenandoah ", "Catalina-utilit", "container-", "AsyncFileHandle",
	} {
		if strings.HasPrefix(comm, prefix) {
			return true
		}
	}
	return comm == "java"
}

// fresh is how long an answer of Load holds: the processes of a host are read one
// after the other, and one answer is for all of them.
const fresh = 100 * time.Millisecond

// Load remembers whether threads of the machine wait for a CPU. It is for one
// goroutine at a time.
type Load struct {
	at    time.Time // of the answer
	waits bool
}

// someWait reports whether more threads of the host can run than us and one other: else
// none of them waits for a CPU.
func (l *Load) someWait(fs hostproc.FS, now time.Time) bool {
	if age := now.Sub(l.at); l.at.IsZero() || age < 0 || age >= fresh {
		n, err := fs.Runnable()
		l.at, l.waits = now, err == nil && n > 2
	}
	return l.waits
}
