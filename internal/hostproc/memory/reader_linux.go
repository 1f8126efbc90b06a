package memory

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"
)

const (
	// startsWithin is how long a child may take until it has given up everything, and
	// retryAfter when another is started after one that did not come so far.
	startsWithin = 5 * time.Second
	retryAfter   = 10 * time.Second
	// idleAfter is when a child ends for which there is nothing to do.
	idleAfter = time.Minute
)

// Reader has the memory of processes read by a child process. It is safe for
// concurrent use: who is slow is waited for by nobody else.
type Reader struct {
	command  func() *exec.Cmd
	deadline time.Duration // of an answer

	mu       sync.Mutex
	patience *patience
	free     *child    // waits for something to do
	broken   time.Time // when a child failed to start
}

// NewReader takes the command that ends in Serve, with the socket as its descriptor Socket.
func NewReader(command func() *exec.Cmd) *Reader {
	return &Reader{command: command, deadline: deadline, patience: newPatience(time.Now)}
}

// ReadAt implements hostproc.Memory.
func (r *Reader) ReadAt(owner string, f *os.File, at []int64, size int) (out [][]byte, err error) {
	each := min(mostAddresses, max(1, most/max(1, size)))
	for len(at) > 0 {
		n := min(each, len(at))
		part, err := r.read(owner, f, at[:n], min(size, most))
		if err != nil {
			return nil, err
		}
		out, at = append(out, part...), at[n:]
	}
	return out, nil
}

func (r *Reader) read(owner string, f *os.File, at []int64, size int) ([][]byte, error) {
	c, err := r.take(owner)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	out, err := c.ask(f, at, size, begin.Add(r.deadline))
	if err == nil {
		r.putBack(owner, c, time.Since(begin))
		return out, nil
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) { // the child has ended
		r.lose(owner, c)
		return nil, err
	}
	r.giveUp(owner, c)
	return nil, ErrNoAnswer
}

// take has a child for an owner: the one that is free, or a new one.
func (r *Reader) take(owner string) (*child, error) {
	r.mu.Lock()
	err := ErrWaits
	if time.Since(r.broken) >= retryAfter {
		err = r.patience.begin(owner)
	}
	if err != nil {
		r.mu.Unlock()
		return nil, err
	}
	c := r.free
	r.free = nil
	r.mu.Unlock()
	if c != nil && c.idle.Stop() && !c.hasEnded() {
		return c, nil
	}
	c, err = startChild(r.command(), time.Now().Add(startsWithin))
	if err == nil {
		return c, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.patience.ended(owner)
	r.broken = time.Now()
	return nil, err
}

// putBack keeps a child for who comes next.
func (r *Reader) putBack(owner string, c *child, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.patience.answered(owner, took)
	if r.free != nil {
		c.end()
		return
	}
	r.free = c
	c.idle = time.AfterFunc(idleAfter, c.end)
}

// giveUp leaves a child to itself, and takes its slot back when it has ended.
func (r *Reader) giveUp(owner string, c *child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.patience.hangs(owner)
	c.end()
	go func() {
		<-c.ended
		r.mu.Lock()
		defer r.mu.Unlock()
		r.patience.ended(owner)
	}()
}

// lose is for a child that has ended by itself.
func (r *Reader) lose(owner string, c *child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.patience.ends(owner)
	c.end()
}

// Close ends the child that is free.
func (r *Reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.free != nil {
		r.free.end()
		r.free = nil
	}
}
