package cgroup

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPodOf(t *testing.T) {
	other := strings.Repeat("ab", 32)
	const foreign = "11111111_2222_3333_4444_555555555555"
	slice := "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uidU + ".slice"
	for _, tt := range []struct {
		name, path string
		want       Pod
	}{
		{"no container", "/system.slice/tomcat10.service", Pod{}},
		{"root", "/", Pod{}},
		{"docker", "/docker/" + hexID, Pod{"", hexID}},
		{"docker in docker: the outer one", "/docker/" + hexID + "/docker/" + other, Pod{"", hexID}},
		{"cgroupfs", "/kubepods/burstable/pod" + uid + "/" + hexID, Pod{uid, hexID}},
		{"cgroupfs, guaranteed", "/kubepods/pod" + uid + "/" + hexID, Pod{uid, hexID}},
		{"systemd, containerd", slice + "/cri-containerd-" + hexID + ".scope", Pod{uid, hexID}},
		{"systemd, cri-o", slice + "/crio-" + hexID + ".scope/container", Pod{uid, hexID}},
		{"systemd, docker", slice + "/docker-" + hexID + ".scope", Pod{uid, hexID}},
		{"containerd without systemd paths", "/system.slice/containerd.service/kubepods-burstable-pod" + uidU + ".slice:cri-containerd:" + hexID, Pod{uid, hexID}},
		{"static pod", "/kubepods/burstable/pod" + uid32 + "/" + hexID, Pod{uid32, hexID}},
		{"cri-o's minder", slice + "/crio-conmon-" + hexID + ".scope", Pod{uid, ""}},
		{"a cgroup namespace, a sidecar's", "/../cri-containerd-" + hexID + ".scope", Pod{"", hexID}},
		{"a cgroup namespace, an agent's", "/../../kubepods-burstable-pod" + uidU + ".slice/cri-containerd-" + hexID + ".scope", Pod{uid, hexID}},
		{"a cgroup namespace, cgroupfs", "/../../../burstable/pod" + uid + "/" + hexID, Pod{uid, hexID}},
		{"docker in a pod", slice + "/cri-containerd-" + hexID + ".scope/docker/" + other, Pod{uid, hexID}},
		{"a pod that calls a group of its own another's", slice + "/cri-containerd-" + hexID + ".scope/kubepods-pod" + foreign + ".slice/cri-containerd-" + other + ".scope", Pod{uid, hexID}},
		{"a container that does", "/system.slice/docker-" + other + ".scope/kubepods-pod" + uidU + ".slice/cri-containerd-" + hexID + ".scope", Pod{"", other}},
		{"a user that does", "/user.slice/user-1000.slice/user@1000.service/kubepods-pod" + uidU + ".slice/cri-containerd-" + hexID + ".scope", Pod{}},
	} {
		require.Equal(t, tt.want, podOf(tt.path), tt.name)
	}
}

// Whoever may make groups, and name them as he likes, is one owner all the same, and nobody else.
func TestOwnerOf(t *testing.T) {
	other := strings.Repeat("ab", 32)
	slice := "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uidU + ".slice"
	const user = "/user.slice/user-1000.slice/user@1000.service"
	for _, tt := range []struct{ name, path, want string }{
		{"none", "/", ""},
		{"a service", "/system.slice/tomcat10.service", ""},
		{"docker", "/system.slice/docker-" + hexID + ".scope", "container " + hexID},
		{"docker in docker: the outer one", "/docker/" + hexID + "/docker/" + other, "container " + hexID},
		{"a pod", slice + "/cri-containerd-" + hexID + ".scope", "pod " + uid},
		{"a pod, cgroupfs", "/kubepods/burstable/pod" + uid + "/" + hexID, "pod " + uid},
		{"a pod's group with a container's name", slice + "/cri-containerd-" + hexID + ".scope/docker/" + other, "pod " + uid},
		{"a pod, seen from another's cgroup namespace", "/../../kubepods-burstable-pod" + uidU + ".slice/cri-containerd-" + hexID + ".scope", "pod " + uid},
		{"a container's group with a pod's name", "/docker/" + hexID + "/kubepods-pod" + uidU + ".slice", "container " + hexID},
		{"a user", "/user.slice/user-1000.slice/session-3.scope", "uid 1000"},
		{"a user, seen from another's cgroup namespace", "/../../user.slice/user-1000.slice/session-3.scope", "uid 1000"},
		{"a user's container, of any of his subordinate ids", user + "/user.slice/libpod-" + hexID + ".scope", "uid 1000"},
		{"a user's group with a container's name", user + "/docker-" + other + ".scope", "uid 1000"},
		{"with a pod's name", user + "/kubepods-pod" + uidU + ".slice/cri-containerd-" + hexID + ".scope", "uid 1000"},
		{"with another user's name", user + "/user.slice/user-33.slice", "uid 1000"},
		{"a service's group with a user's name", "/system.slice/x.service/user.slice/user-33.slice", ""},
		{"a container's", "/docker/" + hexID + "/user.slice/user-33.slice", "container " + hexID},
		{"no user", "/user.slice/user-x.slice", ""},
	} {
		require.Equal(t, tt.want, ownerOf(tt.path), tt.name)
	}
}
