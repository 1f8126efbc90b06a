package threaddump

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hangs"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// Patience is how long everything may take.
	Patience = 5 * time.Second
	// settledAfter is the age below which a JVM is not signalled. What it is ready for
	// is seen from its threads and signals; this is on top.
	settledAfter = 5 * time.Second
	// grace is how long its own end may take; a file system that does not answer is
	// not waited for.
	grace = time.Second
)

// Asker asks JVMs.
type Asker struct {
	proc     hostproc.FS
	patience time.Duration
	settled  time.Duration
	slots    *hangs.Slots // of those that are being asked, or were left behind
}

// NewAsker asks the processes of a proc file system.
func NewAsker(proc hostproc.FS) *Asker {
	return &Asker{proc: proc, patience: Patience, settled: settledAfter, slots: newSlots()}
}

func newSlots() *hangs.Slots {
	return hangs.NewSlots(maxProcesses, maxProcesses, 2*maxProcesses, time.Now)
}

// Ask asks a JVM for a thread dump. Its errors are Refusals.
func (a *Asker) Ask(ctx context.Context, key hostproc.ProcessKey) (*model.Stacks, error) {
	ctx, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	type answer struct {
		stacks *model.Stacks
		err    error
	}
	owner := cgroup.Owner(a.proc, key.PID)
	if err := a.slots.Begin(owner); err != nil {
		return nil, refuse("%v", err)
	}
	done := make(chan answer, 1)
	go func() { // a file system may not answer
		s, err := a.ask(ctx, key)
		a.slots.End(owner)
		done <- answer{s, err}
	}()
	select {
	case got := <-done:
		return got.stacks, got.err
	case <-ctx.Done():
	}
	select {
	case got := <-done:
		return got.stacks, got.err
	case <-time.After(grace):
		a.slots.Hung(owner)
		return nil, tooLate(true) // it may have been sent
	}
}

func (a *Asker) ask(ctx context.Context, key hostproc.ProcessKey) (*model.Stacks, error) {
	j, err := find(a.proc, key)
	if err != nil {
		return nil, err
	}
	d, err := j.openDoor()
	if err != nil {
		return nil, err
	}
	defer d.close()
	conn, err := d.connect(ctx)
	if errors.Is(err, errNobody) {
		conn, err = d.call(ctx, a.settled)
	}
	if err != nil {
		return nil, err
	}
	began := time.Now()
	g, err := threadDump(ctx, conn)
	_ = conn.Close()
	if err != nil {
		return nil, err
	}
	virtual := g.mounted // where the JVM does not write down all
	if g.virtual {
		if all, err := d.virtual(ctx); err == nil {
			virtual, g.stacks.VirtualShown = all, true
		}
		if s, err := d.scheduler(ctx); err == nil {
			g.stacks.Scheduler = s
		}
	}
	g.merge(virtual)
	out := g.result()
	out.At, out.Took = time.Now(), time.Since(began)
	return &out, nil
}

// threadDump asks for one, and reads the answer as fast as it comes, or not to
// its end: a JVM is not left waiting for a reader. Without -l and -e no synchronizers
// and no statistics are asked for.
func threadDump(ctx context.Context, conn *net.UnixConn) (*groups, error) {
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	in, err := request(conn, "threaddump", "")
	if err != nil {
		return nil, err
	}
	g := platformGroups()
	end, err := parse(in, g.add)
	if err != nil {
		return nil, failed(err)
	}
	g.stacks.Deadlocked, g.stacks.Cut = end.deadlocked, end.cut
	return g, nil
}

// request sends a command of the attach interface: its version, the command and three
// arguments, each ended by a zero byte. The first line of the answer is 0 for success.
func request(conn *net.UnixConn, name, argument string) (*bufio.Reader, error) {
	if _, err := fmt.Fprintf(conn, "1\x00%s\x00%s\x00\x00\x00", name, argument); err != nil {
		return nil, failed(err)
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	status, err := in.ReadSlice('\n')
	if err != nil {
		return nil, failed(err)
	}
	if code := strings.TrimSpace(string(status)); code != "0" {
		return nil, refuse("it refused the command (%.16q)", code)
	}
	return in, nil
}

func failed(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return tooLate(false)
	}
	return refuse("its answer ended: %v", err)
}
