package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// hungVariable makes this program the process whose files do not answer.
const hungVariable = "TCPDIAG_SCALE_HUNG"

// hungPort is where that process listens.
const hungPort = 8081

// deadFS is a FUSE file system whose server never answers: a process that opens a file
// there waits (fuse_get_req) until it is aborted.
type deadFS struct {
	device *os.File
	dir    string // in a temporary folder of its own
}

func mountDead() (*deadFS, error) {
	folder, err := os.MkdirTemp("", "tcpdiag-scale-hung-")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(folder, "base")
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err = errors.Join(err, os.Mkdir(dir, 0o700)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device.Fd())
	if err := unix.Mount("tcpdiag-scale", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return nil, errors.Join(fmt.Errorf("mount FUSE: %w", err), device.Close(), os.RemoveAll(folder))
	}
	return &deadFS{device: device, dir: dir}, nil
}

// abort ends everybody's wait with ENOTCONN.
func (d *deadFS) abort() {
	_ = d.device.Close()
	_ = unix.Unmount(d.dir, unix.MNT_DETACH)
	_ = os.RemoveAll(filepath.Dir(d.dir))
}

// startHung starts what looks like a standalone Tomcat whose server.xml lies on a
// file system that does not answer. It ends with its parent.
func startHung(ctx context.Context, base string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	java := filepath.Join(filepath.Dir(base), "java")
	if err := os.Symlink(self, java); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, java, "-Dcatalina.base="+base, "-Dcatalina.home="+base, "org.apache.catalina.startup.Bootstrap", "start")
	cmd.Args[0] = "java"
	cmd.Env = append(os.Environ(), hungVariable+"=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	return cmd, cmd.Start()
}

// runHung is that process's life.
func runHung() (code int, ok bool) {
	if os.Getenv(hungVariable) == "" {
		return 0, false
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Bind(fd, &unix.SockaddrInet6{Port: hungPort}), unix.Listen(fd, 100))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hung:", err)
		return 1, true
	}
	select {}
}

// hung is H6: the discovery of one process never ends; another one is overloaded.
func (s *scale) hung(ctx context.Context) error {
	dead, err := mountDead()
	if err != nil {
		return err
	}
	defer dead.abort()
	tomcat, err := startHung(ctx, dead.dir)
	if err != nil {
		return err
	}
	defer rig.End(tomcat)
	l := limits{maxConnections: 20, acceptCount: 10}
	servers, err := startServers(ctx, 1, l, 15)
	defer stopAll(servers)
	if err != nil {
		return err
	}
	const what = "the discovery of one process does not end"
	flags := append(append(l.flags(), pids(servers)...), "--pid", fmt.Sprint(tomcat.Process.Pid))
	started := time.Now()
	agent, err := s.startAgent(ctx, flags...)
	if err != nil {
		s.report.add(row{Scenario: "H6", What: what + ": ready after the start", Budget: "≤ 2 s", Ours: "not within 30 s"})
		if agent != nil {
			s.report.add(endRow(what, agent))
		}
		return nil
	}
	ready := time.Since(started)
	s.report.add(row{Scenario: "H6", What: what + ": ready after the start", Budget: "≤ 2 s", Ours: seconds(ready), Met: ready <= 2*time.Second})
	patients, share, err := s.trouble(ctx, agent, servers)
	if err == nil {
		s.report.add(troubleRows("H6", what+", another in trouble", patients, share)...)
	}
	s.report.add(endRow(what, agent))
	return err
}

// endRow is how long the agent takes to end on SIGTERM.
func endRow(what string, agent *rig.Agent) row {
	r := row{Scenario: "H6", What: what + ": SIGTERM ends the agent", Budget: "≤ 2 s"}
	start := time.Now()
	_ = agent.Process.Signal(unix.SIGTERM)
	var ending errgroup.Group
	ended := make(chan struct{})
	ending.Go(func() error { defer close(ended); return agent.Wait() })
	select {
	case <-ended:
		took := time.Since(start)
		r.Ours, r.Met = seconds(took), took <= 2*time.Second
	case <-time.After(troubleFor):
		_ = agent.Process.Kill()
		r.Ours = fmt.Sprintf("not within %.0f s", troubleFor.Seconds())
	}
	return r
}
