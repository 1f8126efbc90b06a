package rig

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// Port is where the servers of most cases listen.
const Port = 8080

// Case is one case at work: a step that cannot be taken ends it, what does not hold is
// noted in its row.
type Case struct {
	testing.TB
	*Kit
	Ctx context.Context
	Dir string // of its own
	Row Row

	Viewer  *syscall.Credential // who runs tcpdiag; nil is the one who runs this
	Outside []string            // what takes tcpdiag out of the namespaces of the case

	last string        // what was said last
	ends []func()      // the latest last
	next *atomic.Int64 // of the local ports that clients choose
}

// New begins a case whose row is put into the table when it has ended. It skips the
// test where proofs cannot run or are not asked for.
func New(t testing.TB, table *Table, name string) *Case {
	t.Helper()
	proof.Skip(t)
	nettest.Root(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // for as long as something has to be ended, too
	c := &Case{TB: t, Ctx: ctx, Row: Row{Name: name}, next: new(atomic.Int64)}
	c.Kit = &Kit{Dir: os.Getenv(insideEnv), ctx: ctx, must: c.Must, skip: c.Skips}
	var err error
	if err = os.Chmod(c.Kit.Dir, 0o755); err != nil { //nolint:gosec // tcpdiag is there, for any user
		t.Fatal(err)
	}
	if c.Dir, err = os.MkdirTemp(c.Kit.Dir, "case-"); err != nil {
		t.Fatal(err)
	}
	c.Tcpdiag() // before there is a load: to build it takes a minute
	t.Cleanup(func() {
		c.Unwind()
		cancel()
		t.Logf("\n  truth: %s\n  said:  %s", c.Row.Truth, c.Row.Said)
		if t.Failed() {
			t.Logf("all that was said last: %s", c.last)
		}
		if table != nil {
			table.put(c.Row)
		}
	})
	return c
}

// Must ends the case on an error, with the end of the server's log.
func (c *Case) Must(err error) {
	c.Helper()
	if err != nil {
		text := "not run to its end: " + err.Error() + tail(filepath.Join(c.Dir, "server.log"))
		c.Row.Wrong = append(c.Row.Wrong, text)
		c.Fatal(text)
	}
}

func tail(file string) string {
	text, _ := os.ReadFile(file)
	return " " + string(text[max(0, len(text)-600):])
}

// Holds is an expectation; one that does not hold makes the case wrong.
func (c *Case) Holds(ok bool, format string, args ...any) {
	c.Helper()
	if !ok {
		c.Row.Wrong = append(c.Row.Wrong, fmt.Sprintf(format, args...))
		c.Errorf(format, args...)
	}
}

// Skips ends the case, and says why in its row.
func (c *Case) Skips(format string, args ...any) {
	c.Helper()
	c.Row.Skipped = "not run: " + fmt.Sprintf(format, args...)
	c.Skip(c.Row.Skipped)
}

// Until waits for what is bound to come.
func (c *Case) Until(what string, condition func() bool) {
	c.Helper()
	c.Within(3*time.Minute, what, condition)
}

// Within is the same with another limit.
func (c *Case) Within(limit time.Duration, what string, condition func() bool) {
	c.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) || c.Ctx.Err() != nil {
			c.Must(fmt.Errorf("not within %s: %s", limit, what))
		}
	}
}

// Wait lets time pass.
func (c *Case) Wait(d time.Duration) { Wait(c.Ctx, d) }

// Wait lets time pass.
func Wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// AtEnd has something done when the case ends, before what was to be done already.
func (c *Case) AtEnd(do func()) { c.ends = append(c.ends, do) }

// AtLast is the same, after all else.
func (c *Case) AtLast(do func()) { c.ends = append([]func(){do}, c.ends...) }

// Unwind ends what the case has started.
func (c *Case) Unwind() { c.UnwindTo(0) }

// Mark is where the case is, for UnwindTo.
func (c *Case) Mark() int { return len(c.ends) }

// UnwindTo ends what was started since a mark.
func (c *Case) UnwindTo(mark int) {
	for len(c.ends) > mark {
		last := len(c.ends) - 1
		end := c.ends[last]
		c.ends = c.ends[:last]
		end()
	}
}

// Beside is the same case with a folder of its own, for a server beside another.
func (c *Case) Beside(name string) *Case {
	other := *c
	other.Dir = filepath.Join(c.Dir, name)
	c.Must(os.Mkdir(other.Dir, 0o755))
	other.ends = nil
	c.AtEnd(other.Unwind)
	return &other
}

// Program starts something that is no server, until the case ends; what it says is in
// NAME.log of the case's folder.
func (c *Case) Program(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // ends with the case
	return c.Run(cmd)
}

// Run starts a command until the case ends, when its process group is told to end.
func (c *Case) Run(cmd *exec.Cmd) *exec.Cmd {
	c.Helper()
	log, err := os.CreateTemp(c.Dir, filepath.Base(cmd.Path)+"-*.log")
	c.Must(err)
	defer log.Close()
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.Stderr = log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig, cmd.SysProcAttr.Setpgid = syscall.SIGTERM, true
	c.Must(cmd.Start())
	c.AtEnd(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		kill := time.AfterFunc(5*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer kill.Stop()
		_ = cmd.Wait()
	})
	return cmd
}

// Answers waits until a connection is accepted.
func (c *Case) Answers(address string) {
	c.Helper()
	c.Until(address+" answers", func() bool { return c.accepted(address) })
	c.Wait(settle) // until the connection is closed there, too
}

func (c *Case) accepted(address string) bool {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(c.Ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// Connects reports whether the port of this machine takes a connection now.
func (c *Case) Connects(p int) bool { return c.accepted(fmt.Sprintf("127.0.0.1:%d", p)) }

// settle is the time in which requests that were sent are read, or wait: what is
// seen for the first time is no state yet.
const settle = 2 * time.Second

// Do runs a program whose output matters only when it fails.
func (c *Case) Do(args ...string) { c.Helper(); c.Must(output(c.Ctx, "", args...)) }

// DoIn is the same in a folder.
func (c *Case) DoIn(dir string, args ...string) { c.Helper(); c.Must(output(c.Ctx, dir, args...)) }

// Write makes a file in the case's folder.
func (c *Case) Write(name, text string) string {
	c.Helper()
	path := filepath.Join(c.Dir, name)
	c.Must(os.MkdirAll(filepath.Dir(path), 0o755))
	c.Must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// LocalPort is the next of those that clients choose for themselves, outside of the
// server's range.
func (c *Case) LocalPort() int { return int(c.next.Add(1)) + 20000 }
