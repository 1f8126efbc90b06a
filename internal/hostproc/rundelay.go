package hostproc

import (
	"strings"
	"time"
)

// RunDelayCounter adds up a process's run delay so that it never falls when
// threads end. What a thread waited between the last reading and its end is
// lost. It is for one goroutine at a time, and for one process: make a new one
// when the pid or its start time changes.
type RunDelayCounter struct {
	fs    FS
	pid   int
	total time.Duration
	last  map[int]time.Duration // by thread
	next  map[int]time.Duration
	// aside are the JVM's own service threads, which no request waits for.
	aside map[int]bool
	names map[int]bool // reused: threads alive
}

// NewRunDelayCounter starts at the delay of the threads alive at the first Read.
func (fs FS) NewRunDelayCounter(pid int) *RunDelayCounter {
	return &RunDelayCounter{
		fs: fs, pid: pid, last: map[int]time.Duration{}, next: map[int]time.Duration{},
		aside: map[int]bool{}, names: map[int]bool{},
	}
}

// Read returns the sum so far. On an error it stays as it was.
func (c *RunDelayCounter) Read() (time.Duration, error) {
	clear(c.next)
	err := c.fs.eachRunDelay(c.pid, func(tid int, delay time.Duration) { c.next[tid] = delay })
	if err == nil {
		err = c.setAside()
	}
	if err != nil {
		return c.total, err
	}
	for tid, delay := range c.next {
		if c.aside[tid] {
			continue
		}
		before := c.last[tid]
		if delay < before { // the id was given to a new thread
			before = 0
		}
		c.total += delay - before
	}
	c.last, c.next = c.next, c.last
	return c.total, nil
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
