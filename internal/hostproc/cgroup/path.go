package cgroup

import (
	"strings"
)

// containerID finds the id of a container in a cgroup path: 64 hex digits, as
// docker ("/docker/ID", "docker-ID.scope"), containerd ("cri-containerd-ID.scope",
// "kubepods-…:cri-containerd:ID", "/kubepods/…/ID"), cri-o ("crio-ID.scope") and
// podman ("libpod-ID.scope") write it. The innermost one counts: containers
// nest. "" when there is none.
func containerID(path string) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/:-._", r) })
	for i := len(parts) - 1; i >= 0; i-- {
		// crio-conmon-ID and libpod-conmon-ID are the container's minder.
		if isHex(parts[i], 64) && (i == 0 || parts[i-1] != "conmon") {
			return parts[i]
		}
	}
	return ""
}

// podUID finds the uid of a Kubernetes pod in a cgroup path of the cgroupfs
// driver ("/kubepods/burstable/podUID/…") or the systemd driver
// ("kubepods-burstable-podUID.slice", dashes written as underscores). Static
// pods have 32 hex digits without dashes. "" when there is none.
func podUID(path string) string {
	for segment := range strings.SplitSeq(path, "/") {
		segment, _, _ = strings.Cut(segment, ":") // "…slice:cri-containerd:ID"
		segment = strings.TrimSuffix(segment, ".slice")
		uid, ok := strings.CutPrefix(segment, "pod")
		if at := strings.LastIndex(segment, "-pod"); at >= 0 && strings.Contains(segment, "kubepods") {
			uid, ok = segment[at+len("-pod"):], true
		}
		if !ok {
			continue
		}
		if uid = strings.ReplaceAll(uid, "_", "-"); isUID(uid) {
			return uid
		}
	}
	return ""
}

// isUID accepts 8-4-4-4-12 hex digits, or 32 without dashes.
func isUID(s string) bool {
	if isHex(s, 32) {
		return true
	}
	groups := strings.Split(s, "-")
	if len(groups) != 5 {
		return false
	}
	for i, n := range [5]int{8, 4, 4, 4, 12} {
		if !isHex(groups[i], n) {
			return false
		}
	}
	return true
}

func isHex(s string, length int) bool {
	return len(s) == length && strings.Trim(s, "0123456789abcdef") == ""
}

// below makes a cgroup path relative to the root of a mount of its hierarchy,
// both as mountinfo and cgroup show them to one reader. In a cgroup namespace
// paths outside it begin with "/..". ok is false when the mount does not show
// the cgroup.
func below(mountRoot, path string) (string, bool) {
	if mountRoot == "/" {
		return path, path != "/.." && !strings.HasPrefix(path, "/../")
	}
	rest, ok := strings.CutPrefix(path, mountRoot)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	// "/.." is above "/../..", not below it.
	return rest, rest != "/.." && !strings.HasPrefix(rest, "/../")
}

// besideUs reports whether a path is that of a container beside ours in the same pod, or of our own, as a cgroup namespace shows
// them: what the process mounts names its pod then. Whoever else mounts something at these places may name any.
func besideUs(path string) bool {
	rest := strings.Trim(path, "/")
	for rest == ".." || strings.HasPrefix(rest, "../") {
		rest = strings.TrimPrefix(rest[2:], "/")
	}
	return rest == "" || !strings.Contains(rest, "/") && containerID(rest) != ""
}

// podUIDOfVolume finds the uid in the path of a file that the kubelet mounts
// into a pod: "/var/lib/kubelet/pods/UID/etc-hosts".
func podUIDOfVolume(path string) string {
	_, rest, ok := strings.Cut(path, "/pods/")
	if !ok {
		return ""
	}
	uid, _, _ := strings.Cut(rest, "/")
	if !isUID(uid) {
		return ""
	}
	return uid
}
