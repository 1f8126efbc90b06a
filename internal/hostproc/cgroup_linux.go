package hostproc

import (
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// maxCgroupFile bounds a file that a container may have put in place of one of
// the kernel's. cpu.stat has some hundred bytes.
const maxCgroupFile = 64 << 10

// readFile reads a small file.
type readFile func(path string) ([]byte, error)

// Cgroup reads the control group of a process. Any user may read its paths;
// what the group does is read from the cgroup file systems mounted for us or,
// where those do not show it (a sidecar with a cgroup namespace of its own),
// from those mounted for the process, which takes the permission to open
// /proc/PID/root. What cannot be seen stays nil: that is not an error.
func (fs FS) Cgroup(pid int) (Cgroup, error) {
	proc, err := fs.proc.Proc(pid)
	if err != nil {
		return Cgroup{}, fs.Wrap(pid, "cgroup", err)
	}
	groups, err := proc.Cgroups()
	if err != nil {
		return Cgroup{}, fs.Wrap(pid, "cgroup", err)
	}
	look := cgroupLook{fs: fs, proc: proc, groups: groups}
	defer look.close()
	return look.read(), nil
}

// cgroupLook is one reading of one process's groups.
type cgroupLook struct {
	fs     FS
	proc   procfs.Proc
	groups []procfs.Cgroup

	theirs   []*procfs.MountInfo // the process's own mounts, read when needed
	theyRead bool
	root     *Root
}

func (l *cgroupLook) close() {
	if l.root != nil {
		l.root.Close()
	}
}

func (l *cgroupLook) read() Cgroup {
	var c Cgroup
	c.Path = namedPath(l.groups)
	c.ContainerID, c.PodUID = containerID(c.Path), podUID(c.Path)
	if c.ContainerID == "" && (c.Path == "/" || strings.HasPrefix(c.Path, "/..")) || c.ContainerID != "" && c.PodUID == "" {
		c.nameFromMounts(l.mounts())
	}
	own := true
	l.upwards("cpu", func(dir string, v2 bool, read readFile) {
		if own {
			c.Used = cpuUsage(dir, v2, read)
		}
		own = false
		c.readCPU(dir, v2, read)
	})
	l.upwards("memory", func(dir string, v2 bool, read readFile) { c.readMemory(dir, v2, read) })
	own = true
	l.upwards("pids", func(dir string, _ bool, read readFile) {
		c.readPids(dir, own, read)
		own = false
	})
	c.Frozen = l.frozen()
	return c
}

// frozen asks the process's own group: those below a frozen one say so, too.
func (l *cgroupLook) frozen() bool {
	group, v2, ok := controllerPath(l.groups, "freezer")
	if !ok {
		return false
	}
	point, rel, read := l.locate("freezer", group, v2)
	if read == nil {
		return false
	}
	state, err := read(frozenFile(point, rel, v2))
	return err == nil && isFrozen(state)
}

// upwards calls fn for the process's group of a controller and those above it,
// as far up as a mount shows them.
func (l *cgroupLook) upwards(controller string, fn func(dir string, v2 bool, read readFile)) {
	group, v2, ok := controllerPath(l.groups, controller)
	if !ok {
		return
	}
	point, rel, read := l.locate(controller, group, v2)
	if read == nil {
		return
	}
	for rel = path.Clean("/" + rel); ; rel = path.Dir(rel) {
		fn(path.Join(point, rel), v2, read)
		if rel == "/" {
			return
		}
	}
}

// locate finds a mount that shows the group: ours, else one of the process.
func (l *cgroupLook) locate(controller, group string, v2 bool) (point, rel string, read readFile) {
	if point, rel, ok := visible(l.fs.cgroups, controller, group, v2); ok {
		return point, rel, os.ReadFile
	}
	point, rel, ok := visible(cgroupMounts(l.mounts()), controller, group, v2)
	if !ok {
		return "", "", nil
	}
	root, err := l.openRoot()
	if err != nil {
		return "", "", nil
	}
	return point, rel, root.readFile
}

func visible(mounts []cgroupMount, controller, group string, v2 bool) (point, rel string, ok bool) {
	for _, m := range mounts {
		if m.v2 != v2 {
			continue
		}
		if _, ok := m.controllers[controller]; !v2 && !ok {
			continue
		}
		if rel, ok := below(m.root, group); ok {
			return m.point, rel, true
		}
	}
	return "", "", false
}

// mounts are the process's own; none where they cannot be read.
func (l *cgroupLook) mounts() []*procfs.MountInfo {
	if !l.theyRead {
		l.theyRead = true
		l.theirs, _ = l.proc.MountInfo()
	}
	return l.theirs
}

func (l *cgroupLook) openRoot() (*Root, error) {
	if l.root != nil {
		return l.root, nil
	}
	root, err := l.fs.OpenRoot(l.proc.PID, "root", Cgroups)
	if err == nil {
		l.root = root
	}
	return root, err
}

func (r *Root) readFile(path string) ([]byte, error) {
	f, err := r.regular(path, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxCgroupFile))
}

// nameFromMounts finds a container by the files its manager mounts into it:
// with a cgroup namespace of its own the cgroup path is just "/".
func (c *Cgroup) nameFromMounts(mounts []*procfs.MountInfo) {
	for _, m := range mounts {
		switch m.MountPoint {
		case "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log":
			if c.ContainerID == "" {
				c.ContainerID = containerID(m.Root)
			}
			if c.PodUID == "" {
				c.PodUID = podUIDOfVolume(m.Root)
			}
		}
	}
}

func (c *Cgroup) readCPU(dir string, v2 bool, read readFile) {
	if stat, err := read(dir + "/cpu.stat"); err == nil {
		c.addThrottled(stat)
	}
	limit, ok := cpuLimit(dir, v2, read)
	if ok {
		c.CPULimit = smallest(c.CPULimit, limit)
	}
}

// cpuUsage is the CPU time of a group, nil where version 1 counts it in another
// directory, whose group may be another one.
func cpuUsage(dir string, v2 bool, read readFile) *time.Duration {
	if v2 {
		stat, err := read(dir + "/cpu.stat")
		if used, ok := parseUsage(stat); err == nil && ok {
			return &used
		}
		return nil
	}
	data, err := read(dir + "/cpuacct.usage")
	if n, ok := parseLimit(data); err == nil && ok {
		return new(time.Duration(n))
	}
	return nil
}

func cpuLimit(dir string, v2 bool, read readFile) (float64, bool) {
	if v2 {
		data, err := read(dir + "/cpu.max")
		if err != nil {
			return 0, false
		}
		return parseCPUMax(data)
	}
	quota, err := read(dir + "/cpu.cfs_quota_us")
	if err != nil {
		return 0, false
	}
	period, err := read(dir + "/cpu.cfs_period_us")
	if err != nil {
		return 0, false
	}
	return cpus(string(quota), string(period))
}

func (c *Cgroup) readMemory(dir string, v2 bool, read readFile) {
	name := "/memory.limit_in_bytes"
	if v2 {
		name = "/memory.max"
	}
	c.MemoryLimit = readLimit(c.MemoryLimit, read, dir+name)
}

// readPids reads a group's limit, and how often it was reached: an own group's
// pids.events, of those above it pids.events.local, without their other groups'.
func (c *Cgroup) readPids(dir string, own bool, read readFile) {
	c.PidsLimit = readLimit(c.PidsLimit, read, dir+"/pids.max")
	name := "/pids.events.local"
	if own {
		name = "/pids.events"
	}
	events, err := read(dir + name)
	if n, ok := statNumber(events, []byte("max ")); err == nil && ok {
		c.PidsRefused = sum(c.PidsRefused, n)
	}
}

func readLimit(have *uint64, read readFile, name string) *uint64 {
	data, err := read(name)
	if err != nil {
		return have
	}
	n, ok := parseLimit(data)
	if !ok {
		return have
	}
	return smallest(have, n)
}
