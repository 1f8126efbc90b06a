package rig

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/tcpdiag/tcpdiag/internal/netns"
)

// Child is this program under one of the commands of RunChild: it holds connections, descriptors or a processor, since one
// process may be held to 20,000 descriptors.
type Child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// StartChild returns when the child is ready. Clone flags give it namespaces.
func StartChild(ctx context.Context, flags uintptr, args ...string) (*Child, error) {
	c := &Child{Cmd: exec.CommandContext(ctx, "/proc/self/exe", args...)}
	c.Stderr = os.Stderr
	c.Env = append(os.Environ(), "GOMAXPROCS=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	var err error
	if c.in, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	if err := c.Start(); err != nil {
		return nil, err
	}
	return c, c.answer("ready")
}

// StartBeside starts a child in the network namespace of a process.
func StartBeside(ctx context.Context, pid int, args ...string) (c *Child, err error) {
	err = netns.Do(netns.Path("/proc", pid), func() error { // a process starts in the namespace of the calling thread
		c, err = StartChild(ctx, 0, args...)
		return err
	})
	return c, err
}

// PID is the process.
func (c *Child) PID() int { return c.Process.Pid }

func (c *Child) answer(want string) error {
	if !c.out.Scan() || c.out.Text() != want {
		return fmt.Errorf("%s: said %q instead of %q", strings.Join(c.Args[1:], " "), c.out.Text(), want)
	}
	return nil
}

// Do has the child obey and waits until it has.
func (c *Child) Do(numbers ...int) error {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	if _, err := fmt.Fprintln(c.in, strings.Join(words, " ")); err != nil {
		return err
	}
	return c.answer("done")
}

// Stop ends the child, and with it its sockets.
func (c *Child) Stop() {
	_ = c.in.Close()
	End(c.Cmd)
}

// End kills a process that this program started.
func End(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
