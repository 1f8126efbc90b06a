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
