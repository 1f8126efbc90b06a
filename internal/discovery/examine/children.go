package examine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/hangs"
)

// What one examination may take; see Serve.
const (
	childMemory   = 64 << 20
	childCPU      = 2 * time.Second
	childDeadline = 5 * time.Second
	childFiles    = 1024
	// childHeap lets the garbage collector work before the memory ends.
	childHeap = "GOMEMLIMIT=48MiB"
	// usualChildren and maxChildren bound the children, those among them that were killed and have not ended, some
	// 10 MiB each: a file system that does not answer makes even SIGKILL wait. ofOneOwner: of whose processes they
	// read. See hangs.Slots.
	usualChildren, maxChildren, ofOneOwner = 4, 6, 2
	// endsWithin is how long the end of a killed child is waited for.
	endsWithin = 100 * time.Millisecond
	// startCost is what it takes this process to start one.
	startCost = 2 * time.Millisecond
	maxCrash  = 4 << 10 // bytes of what a child that crashes says
)

// The ways in which an examination fails for what it took.
var (
	errDeadline  = fmt.Errorf("reading it took longer than %v", childDeadline)
	errCPU       = fmt.Errorf("reading it took more than %v of CPU time", childCPU)
	errMemory    = fmt.Errorf("reading it took more than %d MiB of memory", childMemory>>20)
	errAbandoned = errors.New("reading its files hangs, or those of other processes of its user or container; no more is begun until that ends")
)

// Children examine processes, each in a child process of its own that has given
// up everything before it reads what a stranger wrote. They are not waited for
// beyond their deadline, not even for their end.
type Children struct {
	command  func() *exec.Cmd
	Deadline time.Duration // of one examination
	slots    *hangs.Slots  // of those at work or abandoned
	pace     *pace
}

// NewChildren takes the command that ends in Serve.
func NewChildren(path string, args ...string) *Children {
	return StartedBy(childDeadline, func() *exec.Cmd {
		cmd := exec.Command(path, args...) //nolint:noctx // what waits for a context could wait for ever
		cmd.Args[0] = "tcpdiag"
		cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none", childHeap}
		return cmd
	})
}

// StartedBy takes what makes a command that ends in Serve, and the deadline of one examination.
func StartedBy(deadline time.Duration, command func() *exec.Cmd) *Children {
	return &Children{command: command, Deadline: deadline, slots: hangs.NewSlots(ofOneOwner, usualChildren, maxChildren, time.Now), pace: newPace(time.Now)}
}

// Examine starts a child for one process. hangs.ErrOthers and ErrPaced are no failures of the process.
func (c *Children) Examine(_ context.Context, r Request) (*Examination, PerfData, error) {
	if !c.pace.begins(r.Owner) {
		return nil, PerfData{}, ErrPaced
	}
	if err := c.slots.Begin(r.Owner); errors.Is(err, hangs.ErrBefore) {
		return nil, PerfData{}, errAbandoned
	} else if err != nil {
		return nil, PerfData{}, err
	}
	// The kernel kills a child with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	child, err := startChild(c.command(), r)
	if err != nil {
		c.slots.End(r.Owner)
		return nil, PerfData{}, fmt.Errorf("discovery: %w", err)
	}
	_ = child.answer.SetReadDeadline(time.Now().Add(c.Deadline))
	result, err := decode(child.answer)
	data := received(child.passage)
	_ = child.passage.Close()
	ended := child.end(c.slots, r.Owner)
	c.pace.spent(r.Owner, child.cost(ended))
	if err != nil {
		err = child.reason(err, ended)
	}
	if ended {
		_ = child.crash.Close()
	}
	return result, data, err
}

// child is a started one.
type child struct {
	cmd     *exec.Cmd
	answer  *os.File
	crash   *os.File // what it says when it crashes
	passage *os.File // through which it hands over what it has opened
	ended   chan struct{}
	killed  bool // by us
}

func startChild(cmd *exec.Cmd, r Request) (*child, error) {
	request, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var theirs, ours [3]*os.File
	defer func() { closeAll(theirs[:]) }()
	for i := range theirs {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll(ours[:])
			return nil, err
		}
		if theirs[i], ours[i] = write, read; i == 0 {
			theirs[i], ours[i] = read, write
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	dieWithUs(cmd)
	through, err := passage(cmd)
	if err != nil {
		closeAll(ours[:])
		return nil, err
	}
	defer closeAll(cmd.ExtraFiles)
	if err := cmd.Start(); err != nil {
		closeAll(append(ours[:], through))
		return nil, err
	}
	_, _ = ours[0].Write(request) // a pipe holds it; a child that has died says so itself
	_ = ours[0].Close()
	return &child{cmd: cmd, answer: ours[1], crash: ours[2], passage: through, ended: make(chan struct{})}, nil
}

// end kills a child and says whether it has ended. One that does not is left to
// itself, and has its slot until it does.
func (c *child) end(slots *hangs.Slots, owner string) bool {
	defer func() { _ = c.answer.Close() }()
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	ended := c.wait(endsWithin)
	if !ended {
		_ = c.cmd.Process.Kill()
		c.killed = true
		ended = c.wait(endsWithin)
	}
	if ended {
		slots.End(owner)
		return true
	}
	slots.Hung(owner)
	go func() {
		<-c.ended
		slots.End(owner)
		_ = c.crash.Close()
	}()
	return false
}

// cost is the CPU time that one has taken. One that hangs takes none, and its slot instead.
func (c *child) cost(ended bool) time.Duration {
	if !ended {
		return startCost
	}
	return startCost + c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

func (c *child) wait(d time.Duration) bool {
	select {
	case <-c.ended:
		return true
	case <-time.After(d):
		return false
	}
}

// reason says why a child gave no answer.
func (c *child) reason(err error, ended bool) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || !ended {
		return errDeadline
	}
	state := c.cmd.ProcessState
	crash, _ := io.ReadAll(io.LimitReader(c.crash, maxCrash))
	switch {
	case state.Success(), c.killed:
		return err
	case bytes.Contains(crash, []byte("out of memory")), bytes.Contains(crash, []byte("cannot allocate memory")):
		return errMemory
	case state.UserTime()+state.SystemTime() >= childCPU*9/10:
		return errCPU
	}
	return fmt.Errorf("what reads it ended: %s", state)
}
