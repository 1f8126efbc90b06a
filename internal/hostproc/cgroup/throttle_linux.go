package cgroup

import (
	"path"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// ThrottleFile reads cpu.stat of a process's group and of those above it that
// limit its CPU, through files that are kept open. A group that is given its
// first limit later, or a process that moves to another, is not noticed. It is
// for one goroutine at a time.
type ThrottleFile struct {
	stats []*procfile.Handle
	usage *procfile.Handle // version 1's cpuacct.usage; nil: usage_usec of stats[0]
}

// OpenThrottle opens the files; ErrNotSupported where no CPU limit is seen.
func OpenThrottle(fs hostproc.FS, pid int) (*ThrottleFile, error) {
	r, err := newReading(fs, pid)
	if err != nil {
		return nil, err
	}
	defer r.close()
	k := &ThrottleFile{}
	k.open(r)
	if len(k.stats) == 0 || k.usage == nil {
		k.Close()
		return nil, fs.Wrap(pid, "CPU limit", hostproc.ErrNotSupported)
	}
	return k, nil
}

// open opens the files of the mounts that are ours: one of the process's own
// could be anything.
func (k *ThrottleFile) open(r *reading) {
	group, v2, ok := controllerPath(r.groups, "cpu")
	if !ok {
		return
	}
	point, rel, ok := r.visibleHere("cpu", group, v2)
	if !ok {
		return
	}
	k.usage = usageFile(r, path.Join(point, rel), v2)
	var limited []string
	r.upwards("cpu", func(dir string, v2 bool, read readFile) {
		if _, ok := cpuLimit(dir, v2, read); ok {
			limited = append(limited, dir)
		}
	})
	if n := len(limited) - mostLimited; n > 0 {
		limited = slices.Delete(limited, mostLimited/2, mostLimited/2+n)
	}
	for _, dir := range limited {
		if f, err := procfile.OpenHandle(dir+"/cpu.stat", 1<<10); err == nil {
			k.stats = append(k.stats, f)
		}
	}
}

// usageFile counts the CPU time of the process's own group: in version 1 in the
// hierarchy of cpuacct, which is mounted with that of cpu or apart.
func usageFile(r *reading, dir string, v2 bool) *procfile.Handle {
	name := dir + "/cpu.stat"
	if !v2 {
		group, v2, ok := controllerPath(r.groups, "cpuacct")
		point, rel, seen := r.visibleHere("cpuacct", group, v2)
		if !ok || v2 || !seen {
			return nil
		}
		name = path.Join(point, rel, "cpuacct.usage")
	}
	f, err := procfile.OpenHandle(name, 1<<10)
	if err != nil {
		return nil
	}
	return f
}

// Read reads the totals of this moment.
func (k *ThrottleFile) Read(out *Throttle) error {
	*out = Throttle{}
	for _, f := range k.stats {
		data, err := f.Read()
		if err != nil {
			return err
		}
		out.add(data)
	}
	data, err := k.usage.Read()
	if err != nil {
		return err
	}
	out.setUsed(data)
	return nil
}

// Close closes the files.
func (k *ThrottleFile) Close() {
	for _, f := range append(k.stats, k.usage) {
		if f != nil {
			_ = f.Close()
		}
	}
}
