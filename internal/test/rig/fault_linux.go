package rig

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// SetSysctl sets what is the network namespace's, and returns what sets it back.
func (c *Case) SetSysctl(values map[string]string) (undo func()) {
	c.Helper()
	before := make(map[string]string)
	for name, value := range values {
		path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
		old, err := os.ReadFile(path)
		c.Must(err)
		before[path] = string(old)
		c.Must(os.WriteFile(path, []byte(value), 0o600))
	}
	return func() {
		for path, old := range before {
			_ = os.WriteFile(path, []byte(old), 0o600)
		}
	}
}

// Group puts the server into a cgroup of its own, of a controller of version 1 or "" of version 2, and sets what it may use.
func (c *Case) Group(controller string, s *Server, file, value string) {
	c.Helper()
	c.join(controller, fmt.Sprintf("tcpdiag-rig-%d", s.PID), file, value, s.PID)
}

// join puts a process into a cgroup, which is there until the case has ended.
func (c *Case) join(controller, name, file, value string, pid int) {
	c.Helper()
	dir := filepath.Join("/sys/fs/cgroup", controller, name)
	if err := os.Mkdir(dir, 0o755); err == nil {
		c.AtLast(func() { removeSoon(dir) }) // after the server has ended
	}
	c.Must(os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600))
	c.Must(os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600))
}

func removeSoon(dir string) {
	for range 50 {
		if os.Remove(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Freeze stops the server as `docker pause` does, until the case ends.
func (c *Case) Freeze(s *Server) {
	c.Helper()
	c.Group("freezer", s, "freezer.state", "THAWED")
	c.Group("freezer", s, "freezer.state", "FROZEN")
	c.AtEnd(func() { c.Group("freezer", s, "freezer.state", "THAWED") })
}

// Halt stops the server with a signal.
func (c *Case) Halt(s *Server) { c.Helper(); c.Must(syscall.Kill(s.PID, syscall.SIGSTOP)) }

// Quota is a limit of CPUs: "0.1".
func (c *Case) Quota(s *Server, cpus string) {
	c.Helper()
	share, err := strconv.ParseFloat(cpus, 64)
	c.Must(err)
	quota := int(math.Round(share * 100_000))
	if _, err := os.Stat("/sys/fs/cgroup/cpu"); err != nil { // version 2
		c.Group("", s, "cpu.max", fmt.Sprintf("%d 100000", quota))
		return
	}
	c.Group("cpu", s, "cpu.cfs_quota_us", strconv.Itoa(quota))
}

// CrowdedOut leaves the server what eight loops leave of one CPU: 64 shares beside the 1,024 of them all.
func (c *Case) CrowdedOut(s *Server) {
	c.Helper()
	for range 8 {
		cmd := exec.Command("taskset", "-c", "0", "sh", "-c", "while :; do :; done") //nolint:noctx // ends with the case
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		c.Must(cmd.Start())
		c.AtEnd(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		c.join("cpu", fmt.Sprintf("tcpdiag-rig-%d-loops", s.PID), "cpu.shares", "1024", cmd.Process.Pid)
	}
	c.Do("taskset", "-apc", "0", strconv.Itoa(s.PID))
	c.Group("cpu", s, "cpu.shares", "64")
}

// Crowded gives a server that is crowded out a part of that CPU.
func (c *Case) Crowded(s *Server, cpus string) {
	c.Helper()
	part, err := strconv.ParseFloat(cpus, 64)
	c.Must(err)
	c.Group("cpu", s, "cpu.shares", strconv.Itoa(int(1024*part/max(1-part, .1))))
}

// Address gives the loopback another address.
func (c *Case) Address(address string) {
	c.Helper()
	c.Do("ip", "address", "replace", address+"/32", "dev", "lo")
	c.AtEnd(func() { _ = exec.Command("ip", "address", "delete", address+"/32", "dev", "lo").Run() }) //nolint:noctx // after the case
}

// LimitedFiles starts a server with that many open files.
func LimitedFiles(files string) JVM {
	return JVM{Wrap: []string{"prlimit", "--nofile=" + files + ":" + files}}
}

// SlowNetwork makes the loopback one: the SYNs of a burst are all on their way before
// the first last ACK of a handshake. Else a client's SYN and that ACK are one moment,
// and hardly any ACK meets a queue that became full in between.
func (c *Case) SlowNetwork() {
	c.Helper()
	c.Do("ip", "link", "set", "lo", "mtu", "1500") // or the bucket takes a whole burst
	c.Do("tc", "qdisc", "replace", "dev", "lo", "root", "tbf", "rate", "2mbit", "burst", "1600", "latency", "5s")
	c.AtEnd(func() { _ = exec.Command("tc", "qdisc", "del", "dev", "lo", "root").Run() }) //nolint:noctx // ends with the case
}

// RouteNowhere has the answers to addresses that nobody has leave, and be lost.
func (c *Case) RouteNowhere() {
	_ = output(c.Ctx, "", "ip", "route", "add", "198.18.0.0/15", "dev", "lo")
}

// DeafNameServer is one that no packet reaches, in this mount namespace alone.
func (c *Case) DeafNameServer() {
	c.Helper()
	conf := c.Write("resolv.conf", "nameserver 198.18.0.1\noptions timeout:30 attempts:5\n")
	c.Do("mount", "--bind", conf, "/etc/resolv.conf")
	c.AtEnd(func() { _ = exec.Command("umount", "/etc/resolv.conf").Run() }) //nolint:noctx // ends with the case
	c.RouteNowhere()
}
