package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// The exit codes of run that are its own: those of env, timeout and docker run, which
// no load tool uses.
const (
	exitRunFailed    = 125 // tcpdiag could not observe, or was called wrongly
	exitNotStartable = 126 // the command was found and cannot be started
	exitNotFound     = 127 // there is no such command
	exitSignal       = 128 // and the signal's number
)

// child is the command of run. Its input, output, environment, working directory and
// process group are those of this process: it is as if it had been started without
// tcpdiag in front of it.
type child struct {
	cmd     *exec.Cmd
	signals chan os.Signal
	ended   chan int
}

// startError is a command that could not be started, with its exit code.
type startError struct {
	code int
	err  error
}

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// startChild starts the command. The error is a *startError.
func startChild(args []string) (*child, error) {
	path, err := exec.LookPath(args[0])
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return nil, &startError{exitNotFound, fmt.Errorf("%q: command not found", args[0])}
	case err != nil && !errors.Is(err, exec.ErrDot):
		return nil, &startError{exitNotStartable, fmt.Errorf("%q cannot be started: %w", args[0], errors.Unwrap(err))}
	}
	cmd := exec.CommandContext(context.Background(), path, args[1:]...) // nothing ends it but itself and signals
	cmd.Args[0] = args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	c := &child{cmd: cmd, signals: make(chan os.Signal, 8), ended: make(chan int, 1)}
	signal.Notify(c.signals, passedOn()...) // before the start: a signal between the two is not lost
	if err := cmd.Start(); err != nil {
		signal.Stop(c.signals)
		return nil, &startError{exitNotStartable, fmt.Errorf("%q cannot be started: %w", args[0], err)}
	}
	go c.pass()
	go func() {
		_ = cmd.Wait()
		c.ended <- exitCodeOf(cmd.ProcessState)
	}()
	return c, nil
}

// passedOn are the signals that the command gets as well.
func passedOn() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT}
}

// pass hands signals on until the command has ended. What is typed on a terminal reaches the whole
// foreground process group, the command too: it is not to have it twice, as a second
// Ctrl-C ends most load tools at once.
func (c *child) pass() {
	for s := range c.signals {
		if typed(s) && inForeground() {
			continue
		}
		_ = c.cmd.Process.Signal(s)
	}
}

func typed(s os.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGQUIT }

// close ends the passing of signals. The command has ended.
func (c *child) close() {
	signal.Stop(c.signals)
	close(c.signals)
}

// exitCodeOf is the command's own code, 128+n where signal n ended it.
func exitCodeOf(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return s.ExitCode()
}
