package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	insideEnv = "TCPDIAG_LAB_SCENARIO" // the scenario to run, set within its namespace
	kitEnv    = "TCPDIAG_LAB_KIT"
	groupEnv  = "TCPDIAG_LAB_CGROUP" // a cgroup that the scenario may make
	dirEnv    = "TCPDIAG_LAB_DIR"
)

// resultFile is the descriptor on which a scenario hands over its row.
const resultFile = 3

// outside runs a scenario as a process in a fresh network namespace: its
// counters, sysctls and ports are its own, and nothing outlives it.
func outside(ctx context.Context, k kit, dir string, s scenario) row {
	limit := s.limit
	if limit == 0 {
		limit = scenarioLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := reexec(ctx, k, dir, s)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.Broken = "not at its end after " + limit.String()
	case err != nil:
		r.Broken = err.Error()
	}
	return r
}

func reexec(ctx context.Context, k kit, dir string, s scenario) (r row, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return r, err
	}
	given, err := json.Marshal(k)
	if err != nil {
		return r, err
	}
	group := fmt.Sprintf("tcpdiag-lab-%d", os.Getpid())
	defer removeGroup(group)
	in, out, err := os.Pipe()
	if err != nil {
		return r, err
	}
	defer in.Close()
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), insideEnv+"="+s.name, kitEnv+"="+string(given), groupEnv+"="+group, dirEnv+"="+dir)
	cmd.Stderr, cmd.ExtraFiles = &errs, []*os.File{out}
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	defer runtime.UnlockOSThread()
	if err = cmd.Start(); err != nil {
		_ = out.Close()
		return r, err
	}
	_ = out.Close()
	decoded := json.NewDecoder(in).Decode(&r)
	if err = cmd.Wait(); err != nil {
		return r, fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
	}
	return r, decoded
}

// inside is the scenario's process.
func inside(ctx context.Context, name string) error {
	var k kit
	if err := json.Unmarshal([]byte(os.Getenv(kitEnv)), &k); err != nil {
		return err
	}
	for _, s := range scenarios() {
		if s.name != name {
			continue
		}
		if out, err := exec.CommandContext(ctx, "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			return fmt.Errorf("ip link: %w: %s", err, out)
		}
		for name, value := range s.sysctl {
			path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
			if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
				return err
			}
		}
		r := (&bench{ctx: ctx, kit: k, dir: os.Getenv(dirEnv)}).perform(s)
		return json.NewEncoder(os.NewFile(resultFile, "result")).Encode(r)
	}
	return fmt.Errorf("no scenario %q", name)
}

// diesWithParent leaves nothing behind when the lab is killed.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
