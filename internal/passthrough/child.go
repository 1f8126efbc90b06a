// Package passthrough runs a command as if nothing stood before it: its input, output, terminal, signals
// and exit code are its own.
package passthrough

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// The exit codes are those of env, timeout and docker run, which no load tool uses.
const (
	NotStartable = 126 // the command was found and cannot be started
	NotFound     = 127 // there is no such command
	Signal       = 128 // and the signal's number
)

// Child is the command. Its input, output, environment, working directory and
// process group are those of this process: it is as if it had been started without
// tcpdiag in front of it.
type Child struct {
	cmd     *exec.Cmd
	signals chan os.Signal
	// Ended has its exit code when it has: its own, 128+n where signal n ended it.
	Ended chan int
	// Late has the first SIGINT or SIGTERM that came after that was taken: it is for who stands before the command. The next
	// one has its default action.
	Late chan os.Signal
	over atomic.Int64 // when its end was taken from Ended, in nanoseconds; 0 before that
}

// sameAs: a signal within this time of the command's end is the one that ended it, as Ctrl-C reaches both.
const sameAs = 250 * time.Millisecond

// StartError is a command that could not be started, with its exit code.
type StartError struct {
	Code int
	err  error
}

func (e *StartError) Error() string { return e.err.Error() }
func (e *StartError) Unwrap() error { return e.err }

// Start starts the command. The error is a *StartError.
func Start(args []string) (*Child, error) {
	path, err := exec.LookPath(args[0])
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return nil, &StartError{NotFound, fmt.Errorf("%q: command not found", args[0])}
	case err != nil && !errors.Is(err, exec.ErrDot):
		return nil, &StartError{NotStartable, fmt.Errorf("%q cannot be started: %w", args[0], errors.Unwrap(err))}
	}
	cmd := exec.CommandContext(context.Background(), path, args[1:]...) // nothing ends it but itself and signals
	cmd.Args[0] = args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	c := &Child{cmd: cmd, signals: make(chan os.Signal, 8), Ended: make(chan int), Late: make(chan os.Signal, 1)}
	signal.Notify(c.signals, passedOn()...) // before the start: a signal between the two is not lost
	if err := cmd.Start(); err != nil {
		signal.Stop(c.signals)
		return nil, &StartError{NotStartable, fmt.Errorf("%q cannot be started: %w", args[0], err)}
	}
	go c.pass()
	go func() {
		_ = cmd.Wait()
		c.Ended <- exitCodeOf(cmd.ProcessState)
		c.over.Store(time.Now().UnixNano())
	}()
	return c, nil
}

// pass hands signals on until the command has ended. What is typed on a terminal reaches the whole
// foreground process group, the command too: it is not to have it twice, as a second
// Ctrl-C ends most load tools at once.
func (c *Child) pass() {
	for s := range c.signals {
		if over := c.over.Load(); over != 0 {
			c.late(s, time.Since(time.Unix(0, over)))
			continue
		}
		if typed(s) && inForeground() {
			continue
		}
		_ = c.cmd.Process.Signal(s)
	}
}

// late takes a signal that came after the command's end.
func (c *Child) late(s os.Signal, after time.Duration) {
	if (s == os.Interrupt || s == syscall.SIGTERM) && after >= sameAs {
		signal.Stop(c.signals)
		select {
		case c.Late <- s:
		default:
		}
	}
}

func typed(s os.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGQUIT }

// Close ends the passing of signals. The command has ended.
func (c *Child) Close() {
	signal.Stop(c.signals)
	close(c.signals)
}

// exitCodeOf is the command's own code, 128+n where signal n ended it.
func exitCodeOf(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Signal + int(status.Signal())
	}
	return s.ExitCode()
}
