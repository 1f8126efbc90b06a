package hostproc

import (
	"slices"

	"github.com/prometheus/procfs"
)

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

// ownCgroupMounts are those of the reader. They are looked up once: nobody
// moves the cgroup file system of a running system.
func ownCgroupMounts(proc procfs.FS) []CgroupMount {
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
