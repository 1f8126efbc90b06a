package cgroup

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

const (
	hexID = "dc1db54b596ea517f28bc33094f8b5e8dc1db54b596ea517f28bc33094f8b5e8"
	uid   = "6e4a3a4c-2cd4-4f3e-9f7a-0123456789ab"
	uidU  = "6e4a3a4c_2cd4_4f3e_9f7a_0123456789ab"
	uid32 = "8c5d3e0f6ad2a9f2f7a1d2b3c4e5f607"
)

func TestCgroupNames(t *testing.T) {
	for _, tt := range []struct{ name, path, container, pod string }{
		{"none", "/", "", ""},
		{"empty", "", "", ""},
		{"systemd service", "/system.slice/tomcat10.service", "", ""},
		{"user session", "/user.slice/user-1000.slice/session-3.scope", "", ""},
		{"docker cgroupfs", "/docker/" + hexID, hexID, ""},
		{"docker systemd", "/system.slice/docker-" + hexID + ".scope", hexID, ""},
		{"docker in docker", "/docker/" + strings.Repeat("0", 64) + "/docker/" + hexID, hexID, ""},
		{"kubelet cgroupfs", "/kubepods/burstable/pod" + uid + "/" + hexID, hexID, uid},
		{"kubelet cgroupfs guaranteed", "/kubepods/pod" + uid + "/" + hexID, hexID, uid},
		{"kubelet systemd containerd", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uidU + ".slice/cri-containerd-" + hexID + ".scope", hexID, uid},
		{"kubelet systemd guaranteed", "/kubepods.slice/kubepods-pod" + uidU + ".slice/cri-containerd-" + hexID + ".scope", hexID, uid},
		{"kubelet systemd cri-o", "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + uidU + ".slice/crio-" + hexID + ".scope/container", hexID, uid},
		{"containerd without systemd paths", "/system.slice/containerd.service/kubepods-burstable-pod" + uidU + ".slice:cri-containerd:" + hexID, hexID, uid},
		{"kind", "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + uidU + ".slice/cri-containerd-" + hexID + ".scope", hexID, uid},
		{"static pod", "/kubepods/burstable/pod" + uid32 + "/" + hexID, hexID, uid32},
		{"relative to a sidecar", "/../cri-containerd-" + hexID + ".scope", hexID, ""},
		{"relative to an agent", "/../../kubepods-burstable-pod" + uidU + ".slice/cri-containerd-" + hexID + ".scope", hexID, uid},
		{"podman", "/machine.slice/libpod-" + hexID + ".scope/container", hexID, ""},
		{"podman rootless", "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + hexID + ".scope", hexID, ""},
		{"podman's minder", "/machine.slice/libpod-conmon-" + hexID + ".scope", "", ""},
		{"cri-o's minder", "/kubepods.slice/kubepods-pod" + uidU + ".slice/crio-conmon-" + hexID + ".scope", "", uid},
		{"nerdctl", "/system.slice/nerdctl-" + hexID + ".scope", hexID, ""},
		{"ecs", "/ecs/" + uid32 + "/" + hexID, hexID, ""},
		{"65 digits", "/docker/" + hexID + "0", "", ""},
		{"63 digits", "/docker/" + hexID[1:], "", ""},
		{"upper case", "/docker/" + strings.ToUpper(hexID), "", ""},
		{"a service called pod", "/system.slice/pod-runner.service", "", ""},
		{"not a uid", "/kubepods/podlike/" + hexID, hexID, ""},
	} {
		require.Equal(t, tt.container, containerID(tt.path), tt.name)
		require.Equal(t, tt.pod, podUID(tt.path), tt.name)
	}
}

func TestPodUIDOfVolume(t *testing.T) {
	require.Equal(t, uid, podUIDOfVolume("/var/lib/kubelet/pods/"+uid+"/etc-hosts"))
	require.Equal(t, uid32, podUIDOfVolume("/kubelet/pods/"+uid32+"/containers/app/1234"))
	require.Empty(t, podUIDOfVolume("/var/lib/docker/containers/"+hexID+"/hosts"))
	require.Empty(t, podUIDOfVolume("/srv/pods/mine/etc-hosts"))
}

func TestBelow(t *testing.T) {
	for _, tt := range []struct {
		root, path, rel string
		ok              bool
	}{
		{"/", "/", "/", true},
		{"/", "/a/b", "/a/b", true},
		{"/", "/..", "", false},
		{"/", "/../a", "", false},
		{"/", "/..a", "/..a", true},
		{"/docker/x", "/docker/x", "", true},
		{"/docker/x", "/docker/x/y", "/y", true},
		{"/docker/x", "/docker/xy", "", false},
		{"/docker/x", "/", "", false}, // a process of the host, seen from a container
		{"/..", "/../a/b", "/a/b", true},
		{"/..", "/..", "", true},
		{"/..", "/../..", "", false},
		{"/..", "/../../a", "", false},
		{"/..", "/", "", false}, // it is below, but by a name that we cannot see
		{"/../a", "/../a/b", "/b", true},
		{"/../a", "/../b", "", false},
	} {
		rel, ok := below(tt.root, tt.path)
		require.Equal(t, tt.ok, ok, "%q below %q", tt.path, tt.root)
		if ok {
			require.Equal(t, tt.rel, rel, "%q below %q", tt.path, tt.root)
		}
	}
}

func FuzzCgroupNames(f *testing.F) {
	m := mutate.Into(f)
	m.Add("/kubepods.slice/kubepods-pod"+uidU+".slice/cri-containerd-"+hexID+".scope", "/..")
	m.Add("/../../kubepods/pod"+uid+"/"+hexID, "/")
	m.Fuzz(func(t *testing.T, path, root string) {
		if id := containerID(path); id != "" {
			require.Len(t, id, 64)
			require.Contains(t, path, id)
		}
		for _, id := range []string{podUID(path), podUIDOfVolume(path)} {
			require.True(t, id == "" || isUID(id), id)
		}
		if rel, ok := below(root, path); ok {
			require.False(t, strings.HasPrefix(rel+"/", "/../"), "%q leaves the mount", rel)
		}
	})
}
