package hostproc

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// FS is a mounted proc file system.
type FS struct {
	Machine
	// cgroups are the cgroup file systems we see ourselves.
	cgroups []CgroupMount
	// fdCount is set when stat's st_size of an fd folder is the number of
	// open files (Linux 6.2, commit f1f1f2569901).
	fdCount bool
	// samePIDs is set when the mount shows our own pid namespace, so that
	// kill(2) and /proc talk about the same process.
	samePIDs bool
	buffers  *procfile.Buffers
	memory   Memory // nil: nobody reads that of processes
}

// NewFS opens the proc file system mounted at mount, usually "/proc".
func NewFS(mount string) (FS, error) {
	if runtime.GOOS != "linux" {
		return FS{}, fmt.Errorf("hostproc: %q: %w", mount, ErrNotSupported)
	}
	// "self" is always listed, even where it leads nowhere because the mount
	// shows another pid namespace.
	if _, err := os.Lstat(filepath.Join(mount, "self")); err != nil {
		return FS{}, fmt.Errorf("hostproc: %q is not a proc file system: %w", mount, err)
	}
	proc, err := procfs.NewFS(mount)
	if err != nil {
		return FS{}, fmt.Errorf("hostproc: %q: %w", mount, err)
	}
	fs := FS{Machine: Machine{mount, proc}, cgroups: readersCgroupMounts(proc), buffers: &procfile.Buffers{}}
	fs.fdCount = countsDescriptors(filepath.Join(mount, "self", "fd"))
	self, err := os.Readlink(filepath.Join(mount, "self"))
	fs.samePIDs = err == nil && self == strconv.Itoa(os.Getpid())
	return fs, nil
}

// CallingThread stands for a pid where only the network namespace matters: that
// of the thread that calls, whichever namespace it is in. (Before Linux 4.19.22 and 5.0
// the files of /proc/thread-self/net could be those of the thread's
// previous namespace, commit 1fde6f21d90f.)
const CallingThread = 0

// Path is a file of a process: Path(42, "fd") is "/proc/42/fd".
func (fs FS) Path(pid int, names ...string) string {
	name := strconv.Itoa(pid)
	if pid == CallingThread {
		name = "thread-self"
	}
	parts := append([]string{fs.mount, name}, names...)
	return filepath.Join(parts...)
}

// countsDescriptors probes an fd folder of our own, which is never empty: its
// size is 0 on kernels before 6.2.
func countsDescriptors(fd string) bool {
	info, err := os.Stat(fd)
	return err == nil && info.Size() > 0
}

// foreign says whether a process is in another user namespace, whose root may mount
// file systems. Where that cannot be read its root cannot either.
func (fs FS) foreign(pid int) bool {
	ours, _ := os.Readlink("/proc/self/ns/user")
	theirs, _ := os.Readlink(fs.Path(pid, "ns", "user"))
	return theirs != "" && theirs != ours
}

// Share opens a file that is read again and again, into a buffer that it shares with the
// others of this FS.
func (fs FS) Share(name string) (*procfile.Shared, error) { return fs.buffers.Share(name) }

// Procfs parses the files for which it has a parser.
func (fs FS) Procfs() procfs.FS { return fs.proc }

// Cgroups are the cgroup file systems we see ourselves.
func (fs FS) Cgroups() []CgroupMount { return fs.cgroups }

// SamePIDs reports whether the mount shows the processes by the ids that kill(2)
// and SO_PEERCRED use here.
func (fs FS) SamePIDs() bool { return fs.samePIDs }

// CountsOpenFiles reports whether the kernel is asked for the number of open files, which
// takes no longer for many files than for few.
func (fs FS) CountsOpenFiles() bool { return fs.fdCount }

// Listing is the same as on a kernel before 6.2, where open files are listed.
func (fs FS) Listing() FS {
	fs.fdCount = false
	return fs
}

// CgroupMount is a mounted cgroup file system.
type CgroupMount struct {
	V2          bool
	Controllers map[string]string // v1: superblock options, which name them
	Root        string            // the cgroup at the mount point, as the reader sees its path
	Point       string
}

// CgroupMounts picks the cgroup file systems, those that show most first.
func CgroupMounts(mounts []*procfs.MountInfo) []CgroupMount {
	var out []CgroupMount
	for _, m := range mounts {
		if m.FSType == "cgroup" || m.FSType == "cgroup2" {
			out = append(out, CgroupMount{
				V2: m.FSType == "cgroup2", Controllers: m.SuperOptions, Root: m.Root, Point: m.MountPoint,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b CgroupMount) int { return len(a.Root) - len(b.Root) })
	return out
}

// readersCgroupMounts are those of the reader. They are looked up once: nobody
// moves the cgroup file system of a running system.
func readersCgroupMounts(proc procfs.FS) []CgroupMount {
	self, err := proc.Self()
	if err != nil { // a proc of another pid namespace
		self, err = procfs.Self()
	}
	if err != nil {
		return nil
	}
	mounts, err := self.MountInfo()
	if err != nil {
		return nil
	}
	return CgroupMounts(mounts)
}
