package cgroup

import "strings"

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

// IsUID reports whether a text has the form of a pod's uid.
func IsUID(s string) bool { return isUID(s) }
