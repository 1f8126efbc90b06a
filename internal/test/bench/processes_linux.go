package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func cpus() int { return runtime.NumCPU() }

// child is this program under one of the commands of runChild.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startChild returns when the child is ready. Clone flags give it namespaces.
func startChild(ctx context.Context, flags uintptr, args ...string) (*child, error) {
	c := &child{Cmd: exec.CommandContext(ctx, "/proc/self/exe", args...)}
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

func (c *child) pid() int { return c.Process.Pid }

func (c *child) answer(want string) error {
	if !c.out.Scan() || c.out.Text() != want {
		return fmt.Errorf("%s: said %q instead of %q", strings.Join(c.Args[1:], " "), c.out.Text(), want)
	}
	return nil
}

// do has the child obey and waits until it has.
func (c *child) do(numbers ...int) error {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	if _, err := fmt.Fprintln(c.in, strings.Join(words, " ")); err != nil {
		return err
	}
	return c.answer("done")
}

func (c *child) stop() {
	_ = c.in.Close()
	end(c.Cmd)
}

// end kills a process that this program started.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// cpuTime is what a process has used so far, from its own clock
// (CPUCLOCK_SCHED of clock_gettime): exact to the nanosecond, where
// /proc/PID/stat counts hundredths of a second.
func cpuTime(pid int) (time.Duration, error) {
	const sched = 2
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &ts); err != nil {
		return 0, fmt.Errorf("processor time of %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// resident is VmRSS, and the highest it was, in bytes.
func resident(pid int) (now, highest int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	field := func(name string) (kilobytes int64) {
		_, rest, _ := strings.Cut(string(b), name+":")
		_, _ = fmt.Sscan(rest, &kilobytes)
		return kilobytes << 10
	}
	now, highest = field("VmRSS"), field("VmHWM")
	if now == 0 {
		return 0, 0, errors.New("status has no VmRSS")
	}
	return now, highest, nil
}

// shared is the part of a process's resident memory that is files: the program
// itself, which the kernel keeps once for all and drops when it needs room.
func shared(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), "RssFile:")
	var kilobytes int64
	_, err = fmt.Sscan(rest, &kilobytes)
	return kilobytes << 10, err
}
