package hostproc

import "time"

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
}

// NewRunDelayCounter starts at the delay of the threads alive at the first Read.
func (fs FS) NewRunDelayCounter(pid int) *RunDelayCounter {
	return &RunDelayCounter{fs: fs, pid: pid, last: map[int]time.Duration{}, next: map[int]time.Duration{}}
}

// Read returns the sum so far. On an error it stays as it was.
func (c *RunDelayCounter) Read() (time.Duration, error) {
	clear(c.next)
	err := c.fs.eachRunDelay(c.pid, func(tid int, delay time.Duration) { c.next[tid] = delay })
	if err != nil {
		return c.total, err
	}
	for tid, delay := range c.next {
		before := c.last[tid]
		if delay < before { // the id was given to a new thread
			before = 0
		}
		c.total += delay - before
	}
	c.last, c.next = c.next, c.last
	return c.total, nil
}
