package cgroup

import (
	"io"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// maxCgroupFile bounds a file that a container may have put in place of one of
// the kernel's. cpu.stat has some hundred bytes.
const maxFile = 64 << 10

// readFile reads a small file. What it returns is valid until the next one is read.
type readFile func(path string) ([]byte, error)

// Of reads the control group of a process. Any user may read its paths;
// what the group does is read from the cgroup file systems mounted for us or,
// where those do not show it (a sidecar with a cgroup namespace of its own),
// from those mounted for the process, which takes the permission to open
// /proc/PID/root. What cannot be seen stays nil: that is not an error.
func Of(fs hostproc.FS, pid int) (Group, error) {
	r, err := newReading(fs, pid)
	if err != nil {
		return Group{}, err
	}
	defer r.close()
	return r.read(), nil
}

// reading is one reading of one process's groups.
type reading struct {
	fs     hostproc.FS
	proc   procfs.Proc
	groups []procfs.Cgroup
	ours   []hostproc.CgroupMount

	theirs   []*procfs.MountInfo // the process's own mounts, read when needed
	theyRead bool
	root     *hostproc.Root

	buf [1024]byte // for one file at a time
}

// newReading reads which groups a process is in.
func newReading(fs hostproc.FS, pid int) (*reading, error) {
	proc, err := fs.Procfs().Proc(pid)
	if err != nil {
		return nil, fs.Wrap(pid, "cgroup", err)
	}
	groups, err := proc.Cgroups()
	if err != nil {
		return nil, fs.Wrap(pid, "cgroup", err)
	}
	return &reading{fs: fs, proc: proc, groups: groups, ours: fs.Cgroups()}, nil
}

// Owner is the pod of a process, its container or the user in whose slice it runs, by the path of its cgroup alone; where it is in
// none of these, its user ("uid 1000"). "" where nothing can be read.
func Owner(fs hostproc.FS, pid int) string {
	if r, err := newReading(fs, pid); err == nil {
		defer r.close()
		if owner := ownerOf(namedPath(r.groups)); owner != "" {
			return owner
		}
	}
	uid, err := fs.EffectiveUID(pid)
	if err != nil {
		return ""
	}
	return "uid " + strconv.FormatUint(uint64(uid), 10)
}

// ID is the cgroup (v2) of a process, by the inode of its folder as INET_DIAG_CGROUP_ID has it, 0 where that cannot be
// seen; container says whether it is that of a pod or container.
func ID(fs hostproc.FS, pid int) (id uint64, container bool) {
	r, err := newReading(fs, pid)
	if err != nil {
		return 0, false
	}
	defer r.close()
	path := namedPath(r.groups)
	container = podUID(path) != "" || containerID(path) != ""
	for _, g := range r.groups {
		if g.HierarchyID == 0 && len(g.Controllers) == 0 {
			id = folderOf(r.ours, g.Path)
		}
	}
	return id, container
}

// folderOf is the inode of a group's folder, 0 where no mount of ours shows it.
func folderOf(ours []hostproc.CgroupMount, group string) uint64 {
	for _, m := range ours {
		rel, ok := below(m.Root, group)
		if !m.V2 || !ok {
			continue
		}
		var st unix.Stat_t
		if unix.Stat(path.Join(m.Point, rel), &st) == nil {
			return st.Ino
		}
	}
	return 0
}

// PodOf is the pod of a process and its container there, by the path of its cgroup alone: what the
// process mounts, it may choose itself.
func PodOf(fs hostproc.FS, pid int) Pod {
	r, err := newReading(fs, pid)
	if err != nil {
		return Pod{}
	}
	defer r.close()
	return podOf(namedPath(r.groups))
}

func (r *reading) close() {
	if r.root != nil {
		r.root.Close()
	}
}

func (r *reading) read() Group {
	var c Group
	c.Path = namedPath(r.groups)
	pod := podOf(c.Path)
	c.PodUID, c.ContainerID, c.Owner = pod.UID, pod.ContainerID, ownerOf(c.Path)
	if c.ContainerID == "" && c.PodUID == "" { // one that a user has started, at most
		c.ContainerID = containerID(c.Path)
	}
	if c.PodUID == "" && besideUs(c.Path) {
		c.nameFromMounts(r.mounts())
	}
	innermost := true
	r.upwards("cpu", func(dir string, v2 bool, read readFile) {
		if innermost {
			c.Used = cpuUsage(dir, v2, read)
		}
		innermost = false
		c.readCPU(dir, v2, read)
	})
	r.upwards("memory", func(dir string, v2 bool, read readFile) { c.readMemory(dir, v2, read) })
	innermost = true
	r.upwards("pids", func(dir string, _ bool, read readFile) {
		c.readPids(dir, innermost, read)
		innermost = false
	})
	c.Frozen = r.frozen()
	return c
}

// frozen asks the process's own group: those below a frozen one say so, too.
func (r *reading) frozen() bool {
	group, v2, ok := controllerPath(r.groups, "freezer")
	if !ok {
		return false
	}
	point, rel, read := r.locate("freezer", group, v2)
	if read == nil {
		return false
	}
	state, err := read(frozenFile(point, rel, v2))
	return err == nil && isFrozen(state)
}

// upwards calls fn for the process's group of a controller and those above it,
// as far up as a mount shows them.
func (r *reading) upwards(controller string, fn func(dir string, v2 bool, read readFile)) {
	group, v2, ok := controllerPath(r.groups, controller)
	if !ok {
		return
	}
	point, rel, read := r.locate(controller, group, v2)
	if read == nil {
		return
	}
	for _, rel := range levels(rel, mostLevels) {
		fn(path.Join(point, rel), v2, read)
	}
}

// mostLevels is how many groups of a process are read, one above the other, and mostLimited of how many that limit its CPU a file is
// kept open: who is given a group can make thousands below it.
const (
	mostLevels  = 32
	mostLimited = 8
)

// levels are a group and those above it, the innermost first: of more than most the outermost and the innermost.
func levels(rel string, most int) (out []string) {
	for rel = path.Clean("/" + rel); ; rel = path.Dir(rel) {
		if out = append(out, rel); rel == "/" {
			break
		}
	}
	if n := len(out) - most; n > 0 {
		out = slices.Delete(out, most/2, most/2+n)
	}
	return out
}

// locate finds a mount that shows the group: ours, else one of the process.
func (r *reading) locate(controller, group string, v2 bool) (point, rel string, read readFile) {
	if point, rel, ok := r.visibleHere(controller, group, v2); ok {
		return point, rel, func(path string) ([]byte, error) { return procfile.Read(path, r.buf[:]) }
	}
	point, rel, ok := visible(hostproc.CgroupMounts(r.mounts()), controller, group, v2)
	if !ok {
		return "", "", nil
	}
	root, err := r.openRoot()
	if err != nil {
		return "", "", nil
	}
	return point, rel, func(path string) ([]byte, error) { return readFrom(root, path) }
}

// visibleHere finds a mount of ours that shows the group.
func (r *reading) visibleHere(controller, group string, v2 bool) (point, rel string, ok bool) {
	return visible(r.ours, controller, group, v2)
}

func visible(mounts []hostproc.CgroupMount, controller, group string, v2 bool) (point, rel string, ok bool) {
	for _, m := range mounts {
		if m.V2 != v2 {
			continue
		}
		if _, ok := m.Controllers[controller]; !v2 && !ok {
			continue
		}
		if rel, ok := below(m.Root, group); ok {
			return m.Point, rel, true
		}
	}
	return "", "", false
}

// mounts are the process's own; none where they cannot be read.
func (r *reading) mounts() []*procfs.MountInfo {
	if !r.theyRead {
		r.theyRead = true
		r.theirs, _ = r.proc.MountInfo()
	}
	return r.theirs
}

func (r *reading) openRoot() (*hostproc.Root, error) {
	if r.root != nil {
		return r.root, nil
	}
	root, err := r.fs.OpenRoot(r.proc.PID, "root", hostproc.Cgroups)
	if err == nil {
		r.root = root
	}
	return root, err
}

func readFrom(root *hostproc.Root, path string) ([]byte, error) {
	f, err := root.Regular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// nameFromMounts finds a container by the files its manager mounts into it:
// with a cgroup namespace of its own the cgroup path is just "/".
func (c *Group) nameFromMounts(mounts []*procfs.MountInfo) {
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

func (c *Group) readCPU(dir string, v2 bool, read readFile) {
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
	data, err := read(dir + "/cpu.cfs_quota_us")
	if err != nil {
		return 0, false
	}
	quota := string(data)
	period, err := read(dir + "/cpu.cfs_period_us")
	if err != nil {
		return 0, false
	}
	return cpus(quota, string(period))
}

func (c *Group) readMemory(dir string, v2 bool, read readFile) {
	name := "/memory.limit_in_bytes"
	if v2 {
		name = "/memory.max"
	}
	c.MemoryLimit = readLimit(c.MemoryLimit, read, dir+name)
}

// readPids reads a group's limit, and how often it was reached: an own group's
// pids.events, of those above it pids.events.local, without their other groups'.
func (c *Group) readPids(dir string, innermost bool, read readFile) {
	c.PidsLimit = readLimit(c.PidsLimit, read, dir+"/pids.max")
	name := "/pids.events.local"
	if innermost {
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
