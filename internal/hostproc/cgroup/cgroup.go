// Package cgroup reads what a process's control group does to it: its limits, how
// long they have withheld the CPU, whether it is frozen, and which container it is.
package cgroup

import (
	"strconv"
	"strings"
	"time"
)

// Group is what a process's control group does to it, of version 1 or 2. A
// value is nil where it cannot be seen and, for limits, where there is none.
// Each limit is the smallest of the process's own group and of those above it
// that are visible: a pod's limit binds its containers.
type Group struct {
	// Path is the group's path as the reader sees it: relative to its own
	// cgroup namespace, beginning with "/.." for groups outside of it.
	Path        string
	ContainerID string // 64 hex digits, "" outside of containers
	PodUID      string // Kubernetes' uid of the pod, "" outside of pods
	// Owner is whose share it takes up, by the path alone; "" where that does not say it. See ownerOf.
	Owner string

	// Throttled is the time, summed over CPUs, that the group's threads were
	// kept from running by its CPU limit (throttled_usec or throttled_time of
	// cpu.stat): on 16 CPUs up to 16 s in a second. NrThrottled is the number of
	// periods in which any of them were. Both are sums over the group and those
	// above it, and so no shares of anything by themselves.
	Throttled   *time.Duration
	NrThrottled *uint64
	// NrPeriods is the number of periods in which the group had anything to run
	// (nr_periods), the largest of its own and of those above it.
	NrPeriods *uint64
	// Used is the CPU time of the process's own group: usage_usec of version 2,
	// cpuacct.usage of version 1 where it lies in the same directory.
	Used *time.Duration

	// Frozen: it, or one above it, is frozen: "frozen" of cgroup.events in version 2,
	// freezer.state in version 1.
	Frozen bool

	CPULimit    *float64 // CPUs: quota / period
	MemoryLimit *uint64  // bytes
	PidsLimit   *uint64  // threads and processes
	// PidsRefused is how often fork(2) or clone(2) failed for a pids limit: "max" of
	// pids.events of the process's own group, in version 1 too. Since Linux 6.11
	// version 2 counts where the limit is (pids_event); those of the limits above are
	// the "max" of their pids.events.local. nil where there is no such file.
	PidsRefused *uint64
}

// Pod is what the path of a cgroup says of the Kubernetes pod of a process.
type Pod struct {
	UID         string // of the pod, "" where the path does not show it
	ContainerID string // of the pod's container, not of one that runs inside of it
}

// podOf finds the pod in a cgroup's path, from the root downwards: what is below its container,
// that container may have made itself and named as it likes. For the same reason a pod below
// another container, or in a user's own slice, is none.
func podOf(path string) Pod {
	var p Pod
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "user.slice" {
			return Pod{}
		}
		if p.UID == "" {
			p.UID = podUID(segment)
		}
		if p.ContainerID = containerID(segment); p.ContainerID != "" {
			return p
		}
	}
	return p
}

// ownerOf is whose a group is, from the root downwards, as who owns one may make others below it and name them as he
// likes: a pod, a container, or the user in whose slice it is (systemd's user.slice), whatever he calls his groups and
// whichever ids he runs as (/etc/subuid). "" where the path says none of these.
func ownerOf(path string) string {
	top, users := true, false
	for segment := range strings.SplitSeq(path, "/") {
		if uid, ok := userOf(segment); ok && users {
			return uid
		}
		if id := podUID(segment); id != "" {
			return "pod " + id
		}
		if id := containerID(segment); id != "" {
			return "container " + id
		}
		users = top && segment == "user.slice"
		top = top && (segment == "" || segment == "..")
	}
	return ""
}

// userOf is the user ("uid 1000") of a slice that systemd names by one.
func userOf(segment string) (string, bool) {
	number, ok := strings.CutPrefix(strings.TrimSuffix(segment, ".slice"), "user-")
	if _, err := strconv.ParseUint(number, 10, 32); !ok || err != nil {
		return "", false
	}
	return "uid " + number, true
}

// IsUID reports whether a text has the form of a pod's uid.
func IsUID(s string) bool { return isUID(s) }
