package cgroup

import (
	"bytes"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// controllerPath is the process's path in the hierarchy of a controller. Where
// both versions are mounted, a controller belongs to version 1 or else to 2.
func controllerPath(groups []procfs.Cgroup, controller string) (path string, v2, ok bool) {
	for _, g := range groups {
		if slices.Contains(g.Controllers, controller) {
			return g.Path, false, true
		}
	}
	for _, g := range groups {
		if g.HierarchyID == 0 && len(g.Controllers) == 0 {
			return g.Path, true, true
		}
	}
	return "", false, false
}

// namedPath is the path that most likely names the container: the longest one.
// Hierarchies that a container manager does not use leave "/".
func namedPath(groups []procfs.Cgroup) string {
	path := ""
	for _, g := range groups {
		if containerID(g.Path) != "" {
			return g.Path
		}
		if len(g.Path) > len(path) {
			path = g.Path
		}
	}
	return path
}

// addThrottled adds one group's cpu.stat, of either version.
func (c *Group) addThrottled(stat []byte) {
	for line := range bytes.Lines(stat) {
		key, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			continue
		}
		switch key {
		case "nr_periods":
			c.NrPeriods = largest(c.NrPeriods, n)
		case "nr_throttled":
			c.NrThrottled = sum(c.NrThrottled, n)
		case "throttled_usec": // version 2
			c.Throttled = sum(c.Throttled, procfile.Microseconds(n))
		case "throttled_time": // version 1, in nanoseconds
			c.Throttled = sum(c.Throttled, time.Duration(min(n, math.MaxInt64)))
		}
	}
}

func sum[T int64 | uint64 | time.Duration](have *T, n T) *T {
	if have == nil {
		return &n
	}
	return new(*have + n)
}

// parseUsage reads usage_usec of version 2's cpu.stat.
func parseUsage(stat []byte) (time.Duration, bool) {
	for line := range bytes.Lines(stat) {
		if text, ok := strings.CutPrefix(string(line), "usage_usec "); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
			return procfile.Microseconds(n), err == nil
		}
	}
	return 0, false
}

func largest(have *uint64, n uint64) *uint64 {
	if have != nil && *have >= n {
		return have
	}
	return &n
}

// frozenFile is the file that says whether a process's group is frozen, and with it
// those below: "frozen" of cgroup.events in version 2, freezer.state in version 1.
// The root has none: it cannot be frozen.
func frozenFile(point, rel string, v2 bool) string {
	if v2 {
		return path.Join(point, rel, "cgroup.events")
	}
	return path.Join(point, rel, "freezer.state")
}

// isFrozen reads either of these files. FREEZING and FROZEN both stop what runs.
func isFrozen(data []byte) bool {
	n, ok := statNumber(data, []byte("frozen "))
	return ok && n > 0 || bytes.HasPrefix(data, []byte("FR"))
}

// smallest keeps the smaller limit.
func smallest[T uint64 | float64](have *T, n T) *T {
	if have != nil && *have <= n {
		return have
	}
	return &n
}

// parseLimit reads one limit. "max" and, in version 1, PAGE_COUNTER_MAX
// rounded to whole pages and -1 mean none.
func parseLimit(data []byte) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil && n < math.MaxInt64&^0xffff
}

// parseCPUMax reads cpu.max of version 2: "QUOTA PERIOD" in microseconds.
func parseCPUMax(data []byte) (float64, bool) {
	quota, period, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	return cpus(quota, period)
}

// cpus is the limit in CPUs; a quota of "max" or -1 is none.
func cpus(quota, period string) (float64, bool) {
	q, err := strconv.ParseUint(strings.TrimSpace(quota), 10, 63)
	if err != nil {
		return 0, false
	}
	p, err := strconv.ParseUint(strings.TrimSpace(period), 10, 63)
	if err != nil || p == 0 {
		return 0, false
	}
	return float64(q) / float64(p), true
}
